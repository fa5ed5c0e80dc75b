package com.baidu.paddle.lite;

import java.nio.ByteBuffer;
import java.util.Arrays;
import lite.LiteRuntime;

/**
 * An input or output of a predictor, in the file's type and layout. What cannot be done is one line on
 * System.err (Android's log), and false or null.
 */
public class Tensor {
  private static final int FLOAT = 1, INT8 = 5, UINT8 = 6, INT32 = 9, INT64 = 11;

  private final PaddlePredictor predictor;
  private final LiteRuntime model;
  private final boolean input;
  private final int index;
  private long[] asked;

  Tensor(PaddlePredictor predictor, LiteRuntime model, boolean input, int index) {
    this.predictor = predictor;
    this.model = model;
    this.input = input;
    this.index = index;
    asked = own();
  }

  private long[] own() {
    return input ? model.inputShape(index) : model.outputShape(index);
  }

  private String name() {
    return "'" + (input ? model.inputName(index) : model.outputName(index)) + "'";
  }

  /** False for a size that the file does not have: `lite convert --shape` gives it another. */
  public boolean resize(long[] shape) {
    asked = input ? shape.clone() : asked;
    return fits();
  }

  boolean fits() {
    if (Arrays.equals(asked, own())) return true;
    return PaddlePredictor.no(
        name() + ": expected " + Arrays.toString(own()) + ", got " + Arrays.toString(asked)
            + "; another size needs `lite convert --shape`");
  }

  public long[] shape() {
    return asked.clone();
  }

  /** An output's memory, after a run that succeeded; an input's. Null otherwise. */
  private ByteBuffer memory(int count, String what, int... types) {
    final int type = input ? model.inputType(index) : model.outputType(index);
    if (!input && !predictor.ran()) {
      PaddlePredictor.no(name() + " has no value: call run first, or the last one failed");
      return null;
    }
    if (Arrays.stream(types).noneMatch(t -> t == type)) {
      PaddlePredictor.no(name() + " does not hold " + what);
      return null;
    }
    if (input && !fits()) return null;
    final long size = Arrays.stream(own()).reduce(1, (a, b) -> a * b);
    if (count >= 0 && count != size) {
      PaddlePredictor.no(name() + ": expected " + size + " values, got " + count);
      return null;
    }
    return input ? model.input(index) : model.output(index);
  }

  public boolean setData(float[] data) {
    final ByteBuffer to = memory(data.length, "float", FLOAT);
    if (to != null) to.asFloatBuffer().put(data);
    return to != null;
  }

  public boolean setData(int[] data) {
    final ByteBuffer to = memory(data.length, "int32", INT32);
    if (to != null) to.asIntBuffer().put(data);
    return to != null;
  }

  public boolean setData(long[] data) {
    final ByteBuffer to = memory(data.length, "int64", INT64);
    if (to != null) to.asLongBuffer().put(data);
    return to != null;
  }

  public boolean setData(byte[] data) {
    final ByteBuffer to = memory(data.length, "int8 or uint8", INT8, UINT8);
    if (to != null) to.put(data);
    return to != null;
  }

  public float[] getFloatData() {
    final ByteBuffer from = memory(-1, "float", FLOAT);
    if (from == null) return null;
    final float[] data = new float[from.remaining() / Float.BYTES];
    from.asFloatBuffer().get(data);
    return data;
  }

  public int[] getIntData() {
    final ByteBuffer from = memory(-1, "int32", INT32);
    if (from == null) return null;
    final int[] data = new int[from.remaining() / Integer.BYTES];
    from.asIntBuffer().get(data);
    return data;
  }

  public long[] getLongData() {
    final ByteBuffer from = memory(-1, "int64", INT64);
    if (from == null) return null;
    final long[] data = new long[from.remaining() / Long.BYTES];
    from.asLongBuffer().get(data);
    return data;
  }

  public byte[] getByteData() {
    final ByteBuffer from = memory(-1, "int8 or uint8", INT8, UINT8);
    if (from == null) return null;
    final byte[] data = new byte[from.remaining()];
    from.get(data);
    return data;
  }
}
