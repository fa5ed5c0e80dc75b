package lite.app

import android.app.Activity
import android.content.ActivityNotFoundException
import android.content.Intent
import android.graphics.Bitmap
import android.graphics.BitmapFactory
import android.net.Uri
import android.os.Bundle
import android.provider.MediaStore
import android.widget.Button
import android.widget.ImageView
import android.widget.LinearLayout
import android.widget.ScrollView
import android.widget.TextView
import java.io.ByteArrayOutputStream
import java.io.File
import java.io.IOException
import java.util.concurrent.Executors

/** What the application takes: image or audio. */
private const val INPUT = "@INPUT@"

private const val CHOSEN = 1
private const val TAKEN = 2

/** Takes a file of the device or a photo, runs the application, shows the image with the answer and its text. */
class MainActivity : Activity() {
  private val worker = Executors.newSingleThreadExecutor() // the application belongs to one thread
  private var app: LiteApp? = null
  private lateinit var image: ImageView
  private lateinit var text: TextView

  override fun onCreate(state: Bundle?) {
    super.onCreate(state)
    image = ImageView(this).apply { adjustViewBounds = true }
    text = TextView(this)
    val column = LinearLayout(this).apply { orientation = LinearLayout.VERTICAL }
    column.addView(button(if (INPUT == "image") "Choose an image" else "Choose a WAV file") { choose() })
    if (INPUT == "image") column.addView(button("Take a photo") { take() })
    for (view in listOf(image, text)) column.addView(view)
    setContentView(ScrollView(this).apply { addView(column) })
  }

  override fun onDestroy() {
    worker.execute { app?.close() }
    worker.shutdown()
    super.onDestroy()
  }

  private fun button(label: String, click: () -> Unit): Button =
      Button(this).apply {
        text = label
        setOnClickListener { click() }
      }

  private fun choose() {
    val intent = Intent(Intent.ACTION_OPEN_DOCUMENT).setType("$INPUT/*")
    startActivityForResult(intent.addCategory(Intent.CATEGORY_OPENABLE), CHOSEN)
  }

  /** The camera's app takes the photo, so that this one needs no permission. */
  private fun take() {
    val intent = Intent(MediaStore.ACTION_IMAGE_CAPTURE)
    intent.putExtra(MediaStore.EXTRA_OUTPUT, PhotoProvider.uri(this))
    intent.addFlags(Intent.FLAG_GRANT_WRITE_URI_PERMISSION)
    try {
      startActivityForResult(intent, TAKEN)
    } catch (error: ActivityNotFoundException) {
      text.text = "No app takes photos on this device."
    }
  }

  override fun onActivityResult(request: Int, result: Int, data: Intent?) {
    super.onActivityResult(request, result, data)
    if (result != RESULT_OK) return
    val chosen = (if (request == TAKEN) PhotoProvider.uri(this) else data?.data) ?: return
    worker.execute {
      val (said, drawn) =
          try {
            val running = app ?: LiteApp(model().path, cacheDir.path).also { app = it }
            Pair(running.run(read(chosen)), running.drawn())
          } catch (error: Exception) {
            Pair(error.message ?: error.toString(), null)
          }
      runOnUiThread {
        text.text = said
        image.setImageBitmap(drawn?.let { BitmapFactory.decodeByteArray(it, 0, it.size) })
      }
    }
  }

  /** The model as a file, which the runtime maps. Copied again when the app was updated. */
  private fun model(): File {
    val file = File(filesDir, "model.lite")
    val updated = packageManager.getPackageInfo(packageName, 0).lastUpdateTime
    if (file.lastModified() < updated) {
      val part = File(filesDir, "model.part")
      assets.open("model.lite").use { from -> part.outputStream().use { from.copyTo(it) } }
      if (!part.renameTo(file)) throw IOException("$file cannot be written")
    }
    return file
  }

  /** Sounds, JPEG and PNG as they are; what else Android reads (WebP, HEIF) as PNG. */
  private fun read(uri: Uri): ByteArray {
    val stream = contentResolver.openInputStream(uri) ?: throw IOException("$uri cannot be read")
    val bytes = stream.use { it.readBytes() }
    val type = contentResolver.getType(uri)
    if (INPUT == "audio" || type == "image/jpeg" || type == "image/png") return bytes
    val bitmap =
        BitmapFactory.decodeByteArray(bytes, 0, bytes.size)
            ?: throw IOException("$uri is not an image that Android reads")
    return ByteArrayOutputStream().also { bitmap.compress(Bitmap.CompressFormat.PNG, 100, it) }.toByteArray()
  }
}
