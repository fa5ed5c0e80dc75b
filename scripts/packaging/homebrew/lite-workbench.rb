# The `lite` command for Homebrew. scripts/recipes.py fills in address and hash.
class LiteWorkbench < Formula
  include Language::Python::Virtualenv

  desc "@SHORT@"
  url "@URL@"
  sha256 "@SHA256@"
  license "Apache-2.0"

  depends_on "cmake" => :build
  depends_on "ninja" => :build
  depends_on "numpy"
  depends_on "pillow"
  depends_on "python@3.13"

  # `brew update-python-resources lite-workbench` writes the resources of the other packages here.

  def install
    virtualenv_install_with_resources
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/lite --version")
    system bin/"lite", "doctor", "--backend", "reference"
  end
end
