import CLite
import Foundation

/// What runs a model. Without a backend it is the file's first one that works here.
public struct LiteOptions {
  public enum Backend: Int32 {
    case auto, cpu, opencl
  }

  /// 0: one for each processor.
  public var threads: Int32 = 0
  public var backend = Backend.auto
  /// "fp32", "fp16" or "bf16" where it must be that one.
  public var precision: String?
  /// A folder for compiled OpenCL kernels.
  public var cacheFolder: String?

  public init(threads: Int32 = 0) { self.threads = threads }

  func withC<Result>(_ body: (UnsafePointer<lite_options>) throws -> Result) rethrows -> Result {
    var options = lite_options()
    options.threads = threads
    options.backend = backend.rawValue
    let texts = [precision, cacheFolder].map { $0.map { strdup($0) } ?? nil }
    defer { texts.forEach { free($0) } }
    options.precision = UnsafePointer(texts[0])
    options.cache_dir = UnsafePointer(texts[1])
    return try body(&options)
  }
}

/// An open file, which its programs need as long as they live.
final class LiteFile {
  let pointer: OpaquePointer

  static var bundled: String { Bundle.module.path(forResource: "model", ofType: "lite") ?? "model.lite" }

  init(path: String) throws {
    pointer = try made { lite_file_open(path, $0, $1) }
  }

  deinit { lite_file_close(pointer) }
}

/// A model without the steps around it: numbers in, numbers out. For one thread at a time.
///
///     let model = try LiteModel(path: "model.lite")
///     try model.set(0, to: pixels)
///     try model.run()
///     let scores = try model.floats(0)
public final class LiteModel {
  public struct Tensor {
    public let name: String
    /// Numbers of the program format: 1 is Float.
    public let type: Int32
    public let shape: [Int]
    public let bytes: Int
  }

  private let file: LiteFile
  private let program: OpaquePointer

  /// Of a file that `lite convert` wrote. Throws `LiteError`.
  public init(path: String, options: LiteOptions = LiteOptions()) throws {
    let file = try LiteFile(path: path)
    program = try options.withC { options in
      try made { lite_file_program(file.pointer, nil, options, $0, $1) }
    }
    self.file = file
  }

  deinit { lite_program_free(program) }

  public var inputs: [Tensor] {
    (0..<lite_program_num_inputs(program)).map { tensor(lite_program_input(program, $0)) }
  }

  public var outputs: [Tensor] {
    (0..<lite_program_num_outputs(program)).map { tensor(lite_program_output(program, $0)) }
  }

  /// "opencl: NAME, …" or "cpu: reason".
  public var choice: String { String(cString: lite_program_choice(program)) }

  /// Gives an input its numbers. Throws `LiteError` where their count or type is not the input's.
  public func set(_ input: Int, to values: [Float]) throws {
    let memory = try memory(lite_program_input(program, Int32(input)), "input \(input)")
    guard values.count * MemoryLayout<Float>.size == memory.count else {
      throw LiteError(description: "input \(input) has \(memory.count / 4) numbers, not \(values.count)")
    }
    values.withUnsafeBytes { memory.copyMemory(from: $0) }
  }

  /// Throws `LiteError`.
  public func run() throws {
    try check { lite_program_run(program, $0, $1) }
  }

  /// An output of the last run. Throws `LiteError` for one of another type.
  public func floats(_ output: Int) throws -> [Float] {
    let memory = try memory(lite_program_output(program, Int32(output)), "output \(output)")
    return Array(memory.bindMemory(to: Float.self))
  }

  private func memory(_ index: Int32, _ name: String) throws -> UnsafeMutableRawBufferPointer {
    guard index >= 0 else { throw LiteError(description: "the model has no \(name)") }
    let tensor = tensor(index)
    guard tensor.type == 1 else { throw LiteError(description: "\(name) is not of type Float") }
    guard let data = lite_program_data(program, index) else { throw LiteError(description: "out of memory") }
    return UnsafeMutableRawBufferPointer(start: data, count: tensor.bytes)
  }

  private func tensor(_ index: Int32) -> Tensor {
    var info = lite_tensor_info()
    lite_program_tensor(program, index, &info)
    let dims = withUnsafeBytes(of: info.dims) { Array($0.bindMemory(to: Int64.self)) }
    return Tensor(
      name: String(cString: info.name), type: info.dtype, shape: dims.prefix(Int(info.rank)).map(Int.init),
      bytes: info.bytes)
  }
}
