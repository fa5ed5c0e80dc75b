package lite.app;

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;

/** The native methods of the Android app's LiteApp.kt, called by the names that it has: MODEL PHOTO DRAWN. */
public final class LiteApp {
  private native long open(String path, String cacheDir);

  private native byte[] run(long handle, byte[] file);

  private native byte[] drawn(long handle);

  private native void close(long handle);

  private static String refusal(Runnable call) {
    try {
      call.run();
      return "nothing was thrown";
    } catch (RuntimeException error) {
      return error.getMessage();
    }
  }

  public static void main(String[] args) throws Exception {
    System.loadLibrary("lite_jni");
    LiteApp app = new LiteApp();
    String cache = Path.of(args[2]).toAbsolutePath().getParent().toString();
    long handle = app.open(args[0], cache);
    byte[] answer = app.run(handle, Files.readAllBytes(Path.of(args[1])));
    System.out.println(new String(answer, StandardCharsets.UTF_8).strip());
    Files.write(Path.of(args[2]), app.drawn(handle));
    System.err.println(refusal(() -> app.run(handle, new byte[] {1, 2, 3})));
    app.close(handle);
    System.err.println(refusal(() -> app.open("/nowhere.lite", cache)));
  }
}
