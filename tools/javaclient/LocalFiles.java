import java.io.File;
import org.apache.iceberg.Files;
import org.apache.iceberg.io.FileIO;
import org.apache.iceberg.io.InputFile;
import org.apache.iceberg.io.OutputFile;
import org.apache.iceberg.io.PositionOutputStream;
import org.apache.iceberg.io.SeekableInputStream;

/** Files on local disk whose locations are URLs, which Iceberg's own turns into paths. */
final class LocalFiles implements FileIO {
  private static final long serialVersionUID = 1L;

  @Override
  public InputFile newInputFile(String location) {
    InputFile file = Files.localInput(path(location));
    return new InputFile() {
      @Override
      public long getLength() {
        return file.getLength();
      }

      @Override
      public SeekableInputStream newStream() {
        return file.newStream();
      }

      @Override
      public String location() {
        return location;
      }

      @Override
      public boolean exists() {
        return file.exists();
      }
    };
  }

  @Override
  public OutputFile newOutputFile(String location) {
    OutputFile file = Files.localOutput(path(location));
    return new OutputFile() {
      @Override
      public PositionOutputStream create() {
        return file.create();
      }

      @Override
      public PositionOutputStream createOrOverwrite() {
        return file.createOrOverwrite();
      }

      @Override
      public String location() {
        return location;
      }

      @Override
      public InputFile toInputFile() {
        return newInputFile(location);
      }
    };
  }

  @Override
  public void deleteFile(String location) {
    if (!path(location).delete()) {
      throw new IllegalStateException("cannot delete " + location);
    }
  }

  private static File path(String location) {
    return new File(location.replaceFirst("^file:(//)?", ""));
  }
}
