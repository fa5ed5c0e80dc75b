package com.baidu.paddle.lite;

/**
 * Paddle-Lite's modes. LITE_POWER_HIGH and the others leave the choice of cores to the system here; what
 * a config was given can be read back.
 */
public enum PowerMode {
  LITE_POWER_HIGH(0),
  LITE_POWER_LOW(1),
  LITE_POWER_FULL(2),
  LITE_POWER_NO_BIND(3),
  LITE_POWER_RAND_HIGH(4),
  LITE_POWER_RAND_LOW(5);

  private final int number;

  PowerMode(int number) {
    this.number = number;
  }

  public int value() {
    return number;
  }
}
