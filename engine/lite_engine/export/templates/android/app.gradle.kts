plugins {
  id("com.android.application")
  id("org.jetbrains.kotlin.android")
}

android {
  namespace = "lite.app"
  compileSdk = 34

  defaultConfig {
    applicationId = "lite.app"
    minSdk = 24
    targetSdk = 34
    versionCode = 1
    versionName = "1.0"
    ndk { abiFilters += listOf("arm64-v8a", "armeabi-v7a") }
    externalNativeBuild {
      cmake {
        arguments += listOf("-DANDROID_STL=c++_static", "-DCMAKE_BUILD_TYPE=Release")
        targets += "lite_jni" // and what it links, not the command-line runner
      }
    }
  }

  externalNativeBuild { cmake { path = file("src/main/cpp/CMakeLists.txt") } }
  androidResources { noCompress += "lite" }
  compileOptions {
    sourceCompatibility = JavaVersion.VERSION_11
    targetCompatibility = JavaVersion.VERSION_11
  }
  kotlinOptions { jvmTarget = "11" }
}
