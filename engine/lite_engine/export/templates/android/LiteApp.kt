package lite.app

/** The application in model.lite, for one thread at a time. Errors are RuntimeExceptions of one line. */
class LiteApp(path: String, cacheDir: String) : AutoCloseable {
  private var handle = open(path, cacheDir)

  /** The answer about a JPEG, PNG, BMP or WAV file as JSON, with each stage's time. */
  fun run(file: ByteArray): String = String(run(alive(), file), Charsets.UTF_8)

  /** The last image with the answer drawn on it, as a PNG file; null for a sound. */
  fun drawn(): ByteArray? = drawn(alive())

  override fun close() {
    if (handle != 0L) close(handle)
    handle = 0L
  }

  private fun alive(): Long {
    check(handle != 0L) { "the application is closed" }
    return handle
  }

  private external fun open(path: String, cacheDir: String): Long

  private external fun run(handle: Long, file: ByteArray): ByteArray

  private external fun drawn(handle: Long): ByteArray?

  private external fun close(handle: Long)

  private companion object {
    init {
      System.loadLibrary("lite_jni")
    }
  }
}
