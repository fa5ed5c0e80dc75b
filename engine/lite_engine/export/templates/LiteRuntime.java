package lite;

import java.nio.ByteBuffer;
import java.nio.ByteOrder;

/** One model, for one thread at a time: {@code try (LiteRuntime model = new LiteRuntime(path, 0))}. */
public final class LiteRuntime implements AutoCloseable {
  static {
    System.loadLibrary("lite_jni");
  }

  /** Null and 0 leave the choice to the file and the machine. */
  public static final class Options {
    /** 0: one per processor. */
    public int threads = 0;

    /** "auto", "cpu" or "opencl". */
    public String backend = "auto";

    /** OpenCL device: its number or part of its name. */
    public String device = null;

    /** Folder for compiled OpenCL kernels. */
    public String cacheDir = null;

    /** "fp32", "fp16" or "bf16". */
    public String precision = null;

    /**
     * The device measures the file's OpenCL variants of layers and keeps the fastest in cacheDir, or
     * beside the file.
     */
    public boolean tune = false;
  }

  private static final int CHOICE = 0, WARNING = 1, TUNING = 2;

  private long handle;

  /** Opens a .lite file; threads 0 is one per processor. Throws RuntimeException saying why not. */
  public LiteRuntime(String path, int threads) {
    handle = open(path, threads, null, null, null, null, false);
  }

  /** Opens a .lite file. Throws RuntimeException saying why not. */
  public LiteRuntime(String path, Options options) {
    handle =
        open(
            path,
            options.threads,
            options.backend,
            options.device,
            options.cacheDir,
            options.precision,
            options.tune);
  }

  /** The runtime's version. */
  public static native String version();

  /** What was chosen and why: "opencl: NAME, ..." or "cpu: reason". */
  public String choice() {
    return told(alive(), CHOICE);
  }

  /** Why the CPU runs what the OpenCL device was to run; null where it does not. */
  public String warning() {
    return told(alive(), WARNING);
  }

  /** With Options.tune: what was measured; null where nothing was. */
  public String tuning() {
    return told(alive(), TUNING);
  }

  public int inputs() {
    return count(alive(), true);
  }

  public int outputs() {
    return count(alive(), false);
  }

  public String inputName(int i) {
    return name(alive(), true, i);
  }

  public String outputName(int i) {
    return name(alive(), false, i);
  }

  public long[] inputShape(int i) {
    return shape(alive(), true, i);
  }

  public long[] outputShape(int i) {
    return shape(alive(), false, i);
  }

  /** The elements' type, by the number of lite_tensor_info: 1 is float, 9 int32, 11 int64. */
  public int inputType(int i) {
    return type(alive(), true, i);
  }

  public int outputType(int i) {
    return type(alive(), false, i);
  }

  /** The input's own memory: write into it before run(). Not to be used after close(). */
  public ByteBuffer input(int i) {
    return data(alive(), true, i).order(ByteOrder.nativeOrder());
  }

  /** The output's own memory, until the next run() or close(). */
  public ByteBuffer output(int i) {
    return data(alive(), false, i).order(ByteOrder.nativeOrder());
  }

  public void run() {
    run(alive());
  }

  /**
   * Runs again on the inputs, on the device and layer by layer on the CPU. Returns the first layer that differs
   * by more than tolerance (relative L2 error); null where none does, or where no device runs any.
   */
  public String check(double tolerance) {
    return check(alive(), tolerance);
  }

  /** Leaves layers of the device to the CPU from the next run on; choice() and warning() give the reason. */
  public void leave(String[] layers, String reason) {
    leave(alive(), layers, reason);
  }

  @Override
  public void close() {
    if (handle != 0) close(handle);
    handle = 0;
  }

  private long alive() {
    if (handle == 0) throw new IllegalStateException("the model is closed");
    return handle;
  }

  private static native long open(
      String path,
      int threads,
      String backend,
      String device,
      String cacheDir,
      String precision,
      boolean tune);

  private static native String told(long handle, int what);

  private static native void close(long handle);

  private static native int count(long handle, boolean input);

  private static native String name(long handle, boolean input, int i);

  private static native long[] shape(long handle, boolean input, int i);

  private static native int type(long handle, boolean input, int i);

  private static native ByteBuffer data(long handle, boolean input, int i);

  private static native void run(long handle);

  private static native String check(long handle, double tolerance);

  private static native void leave(long handle, String[] layers, String reason);
}
