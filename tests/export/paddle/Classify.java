import com.baidu.paddle.lite.MobileConfig;
import com.baidu.paddle.lite.PaddlePredictor;
import com.baidu.paddle.lite.PowerMode;
import com.baidu.paddle.lite.Tensor;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Locale;

/** Written from the usage that Paddle-Lite's Java documentation shows: Classify MODEL; answers of ones. */
public final class Classify {
  private static void check(boolean holds, String what) {
    if (!holds) throw new AssertionError(what);
  }

  private static void print(PaddlePredictor predictor) {
    float[] ones = new float[3 * 20 * 20];
    Arrays.fill(ones, 1);
    Tensor input = predictor.getInput(0);
    check(input.resize(new long[] {1, 3, 20, 20}), "resize");
    check(input.setData(ones), "setData");
    check(predictor.run(), "run");
    Tensor result = predictor.getOutput(0);
    StringBuilder line =
        new StringBuilder("output prob of " + result.shape().length + " dims:");
    for (float value : result.getFloatData()) line.append(String.format(Locale.ROOT, " %.7g", value));
    System.out.println(line);
  }

  public static void main(String[] args) throws IOException {
    MobileConfig config = new MobileConfig();
    config.setModelFromFile(args[0]);
    config.setPowerMode(PowerMode.LITE_POWER_HIGH);
    config.setThreads(2);
    PaddlePredictor predictor = PaddlePredictor.createPaddlePredictor(config);
    check(predictor.getOutput(0).getFloatData() == null, "no value before run");
    print(predictor);
    System.out.println(predictor.getVersion());

    Tensor input = predictor.getInput(0);
    check(!input.setData(new float[3]) && !input.setData(new long[3 * 20 * 20]), "size and type");
    check(predictor.getOutput(0).getLongData() == null, "type of an output");
    check(!input.resize(new long[] {1, 3, 64, 64}) && !predictor.run(), "another size");
    check(predictor.getOutput(0).getFloatData() == null, "no value after a failed run");
    check(predictor.getInput(1) == null && predictor.getOutput(-1) == null, "indices");

    byte[] bytes = Files.readAllBytes(Path.of(args[0]));
    config.setModelFromBuffer(new String(bytes, StandardCharsets.ISO_8859_1));
    print(PaddlePredictor.createPaddlePredictor(config));
    config.setModelFromFile("/nowhere.lite");
    check(PaddlePredictor.createPaddlePredictor(config) == null, "no such file");
  }
}
