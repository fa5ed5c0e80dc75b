package com.baidu.paddle.lite;

/** Settings of a predictor: a .lite file, threads. */
public class MobileConfig extends ConfigBase {
  private String file = "";
  private String buffer = null;
  private int threads = 1;
  private PowerMode mode = PowerMode.LITE_POWER_NO_BIND;

  public void setModelFromFile(String path) {
    file = path;
    buffer = null;
  }

  public String getModelFromFile() {
    return file;
  }

  /** The bytes of a .lite file, one in each char. */
  public void setModelFromBuffer(String bytes) {
    buffer = bytes;
  }

  public String getModelFromBuffer() {
    return buffer;
  }

  /** Fewer than one become one. */
  public void setThreads(int count) {
    threads = Math.max(1, count);
  }

  public int getThreads() {
    return threads;
  }

  public void setPowerMode(PowerMode power) {
    mode = power;
  }

  public PowerMode getPowerMode() {
    return mode;
  }

  public int getPowerModeInt() {
    return mode.value();
  }
}
