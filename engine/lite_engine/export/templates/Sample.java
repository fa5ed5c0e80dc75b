import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import lite.LiteRuntime;

/** Runs the model once: java Sample MODEL.lite [INPUT.raw [BACKEND]]; see sample.c. */
public final class Sample {
  public static void main(String[] args) {
    try {
      run(args);
    } catch (IOException | RuntimeException | LinkageError error) {
      System.err.println("error: " + error.getMessage());
      System.exit(1);
    }
  }

  private static void run(String[] args) throws IOException {
    if (args.length < 1 || args.length > 3)
      throw new IllegalArgumentException("usage: Sample MODEL.lite [INPUT.raw [BACKEND]]");
    LiteRuntime.Options options = new LiteRuntime.Options();
    if (args.length > 2) options.backend = args[2];
    try (LiteRuntime model = new LiteRuntime(args[0], options)) {
      if (args.length > 1) {
        byte[] bytes = read(args[1]);
        ByteBuffer input = model.input(0);
        if (bytes.length != input.remaining())
          throw new IOException(args[1] + ": " + input.remaining() + " bytes are needed");
        input.put(bytes);
      }
      model.run();
      for (int i = 0; i < model.outputs(); ++i) {
        ByteBuffer values = model.output(i);
        StringBuilder line = new StringBuilder(model.outputName(i)).append(':');
        for (int k = 0; k < 10 && values.hasRemaining(); ++k)
          line.append(' ').append(next(values, model.outputType(i)));
        System.out.println(line);
      }
      System.err.println(model.choice());
    }
  }

  private static byte[] read(String path) throws IOException {
    try {
      return Files.readAllBytes(Path.of(path));
    } catch (IOException error) {
      throw new IOException(path + " cannot be read");
    }
  }

  /** The next value, of a type by its number in lite_tensor_info; 16-bit floats as their bits. */
  private static String next(ByteBuffer values, int type) {
    switch (type) {
      case 1:
        return String.format(Locale.ROOT, "%.6g", values.getFloat());
      case 4:
        return String.format(Locale.ROOT, "%.6g", values.getDouble());
      case 5:
        return Integer.toString(values.get());
      case 7:
        return Integer.toString(values.getShort());
      case 2: // fp16
      case 3: // bf16
      case 8:
        return Integer.toString(Short.toUnsignedInt(values.getShort()));
      case 9:
        return Integer.toString(values.getInt());
      case 10:
        return Integer.toUnsignedString(values.getInt());
      case 11:
        return Long.toString(values.getLong());
      case 12:
        return Long.toUnsignedString(values.getLong());
      default: // 6 u8, 13 bool
        return Integer.toString(Byte.toUnsignedInt(values.get()));
    }
  }
}
