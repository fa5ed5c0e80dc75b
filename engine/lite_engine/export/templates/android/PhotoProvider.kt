package lite.app

import android.content.ContentProvider
import android.content.ContentValues
import android.content.Context
import android.database.Cursor
import android.net.Uri
import android.os.ParcelFileDescriptor
import java.io.File

/** Where the camera's app writes a photo: one file of this app, which no other app sees unless it is asked to. */
class PhotoProvider : ContentProvider() {
  override fun onCreate(): Boolean = true

  override fun openFile(uri: Uri, mode: String): ParcelFileDescriptor =
      ParcelFileDescriptor.open(file(context!!), ParcelFileDescriptor.parseMode(mode))

  override fun getType(uri: Uri): String = "image/jpeg"

  override fun query(
      uri: Uri,
      columns: Array<String>?,
      selection: String?,
      arguments: Array<String>?,
      order: String?,
  ): Cursor? = null

  override fun insert(uri: Uri, values: ContentValues?): Uri? = null

  override fun update(uri: Uri, values: ContentValues?, selection: String?, arguments: Array<String>?): Int = 0

  override fun delete(uri: Uri, selection: String?, arguments: Array<String>?): Int = 0

  companion object {
    fun uri(context: Context): Uri = Uri.parse("content://${context.packageName}.photo/photo.jpg")

    private fun file(context: Context) = File(context.cacheDir, "photo.jpg")
  }
}
