package com.baidu.paddle.lite;

import java.io.File;
import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import lite.LiteRuntime;

/**
 * Paddle-Lite's Java interface over {@link LiteRuntime}, for .lite files. One predictor is used by one
 * thread at a time.
 */
public class PaddlePredictor {
  private final LiteRuntime model;
  private final Tensor[] inputs, outputs;
  private boolean ran = false;

  private PaddlePredictor(LiteRuntime model) {
    this.model = model;
    inputs = new Tensor[model.inputs()];
    outputs = new Tensor[model.outputs()];
    for (int i = 0; i < inputs.length; ++i) inputs[i] = new Tensor(this, model, true, i);
    for (int i = 0; i < outputs.length; ++i) outputs[i] = new Tensor(this, model, false, i);
  }

  /** Null where the model cannot be opened, with one line on System.err. */
  public static PaddlePredictor createPaddlePredictor(ConfigBase config) {
    try {
      if (!(config instanceof MobileConfig)) {
        no("expected a MobileConfig; Paddle's own model files are read by `lite convert`");
        return null;
      }
      final MobileConfig mobile = (MobileConfig) config;
      final String buffer = mobile.getModelFromBuffer();
      if (buffer == null) return new PaddlePredictor(new LiteRuntime(path(mobile), mobile.getThreads()));
      final File file = File.createTempFile("model", ".lite");
      try (FileOutputStream out = new FileOutputStream(file)) {
        out.write(buffer.getBytes(StandardCharsets.ISO_8859_1));
        return new PaddlePredictor(new LiteRuntime(file.getPath(), mobile.getThreads()));
      } finally {
        file.delete(); // it stays mapped while the model is open
      }
    } catch (IOException | RuntimeException error) {
      no(error.getMessage());
      return null;
    }
  }

  private static String path(MobileConfig config) {
    if (!config.getModelFromFile().isEmpty()) return config.getModelFromFile();
    final File inside = new File(config.getModelDir(), "model.lite");
    return inside.isFile() ? inside.getPath() : config.getModelDir();
  }

  /** Null for an index that the model does not have. */
  public Tensor getInput(int i) {
    return i >= 0 && i < inputs.length ? inputs[i] : null;
  }

  public Tensor getOutput(int i) {
    return i >= 0 && i < outputs.length ? outputs[i] : null;
  }

  /** False where an input's size is another than the file's or the run failed. */
  public boolean run() {
    ran = false;
    for (Tensor input : inputs) if (!input.fits()) return false;
    try {
      model.run();
    } catch (RuntimeException error) {
      return no(error.getMessage());
    }
    return ran = true;
  }

  boolean ran() {
    return ran;
  }

  public String getVersion() {
    return LiteRuntime.version();
  }

  static boolean no(String why) {
    System.err.println("lite: " + why);
    return false;
  }

  @Override
  @SuppressWarnings({"deprecation", "removal"}) // the interface has no close
  protected void finalize() {
    model.close();
  }
}
