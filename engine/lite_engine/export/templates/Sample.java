import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.FloatBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Locale;
import lite.LiteRuntime;

/** Runs the model once: java Sample MODEL.lite [INPUT.raw [BACKEND]]; see sample.c. */
public final class Sample {
  public static void main(String[] args) throws IOException {
    LiteRuntime.Options options = new LiteRuntime.Options();
    if (args.length > 2) options.backend = args[2];
    try (LiteRuntime model = new LiteRuntime(args[0], options)) {
      if (args.length > 1) {
        byte[] bytes = Files.readAllBytes(Path.of(args[1]));
        ByteBuffer input = model.input(0);
        if (bytes.length != input.remaining())
          throw new IOException(args[1] + ": " + input.remaining() + " bytes are needed");
        input.put(bytes);
      }
      model.run();
      for (int i = 0; i < model.outputs(); ++i) {
        FloatBuffer values = model.output(i).asFloatBuffer();
        StringBuilder line = new StringBuilder(model.outputName(i)).append(':');
        for (int k = 0; k < Math.min(10, values.limit()); ++k)
          line.append(String.format(Locale.ROOT, " %.6g", values.get(k)));
        System.out.println(line);
      }
      System.err.println(model.choice());
    }
  }
}
