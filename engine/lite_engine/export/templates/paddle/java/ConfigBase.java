package com.baidu.paddle.lite;

/** Where the model lies. */
public class ConfigBase {
  private String modelDir = "";

  /** A .lite file, or a folder with model.lite in it. */
  public void setModelDir(String path) {
    modelDir = path;
  }

  public String getModelDir() {
    return modelDir;
  }
}
