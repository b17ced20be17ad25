package format

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"reprise/activities/tool"
	"reprise/interpreter"
)

// mostRatio bounds how many times its size a source may take on disk once it is unpacked. Without it, a file of some megabytes would fill the disk of the worker.
const mostRatio = 200

// unpackToDisk copies content to a file without a name, which the caller closes. The content may have least bytes, however small the source is.
func (s *RowSource) unpackToDisk(ctx context.Context, content io.Reader, least int64) (file *os.File, size int64, err error) {
	if file, err = s.Temporary(); err != nil {
		return nil, 0, s.diskError(err)
	}
	most := max(least, mostRatio*s.Size)
	size, err = copyToFile(ctx, file, io.LimitReader(content, most+1))
	switch {
	case err == nil && size > most:
		err = tool.TooLargeErrorf("%s is larger than the limit of %d bytes once it is unpacked: that is %d times its size", s.What, most, most/max(1, s.Size))
	case err == nil:
		return file, size, nil
	}
	if _, own := errors.AsType[*fs.PathError](err); own {
		err = s.diskError(err)
	}
	return nil, 0, errors.Join(err, file.Close())
}

// copyToFile copies content until ctx ends. The error is an fs.PathError if the file cannot be written.
func copyToFile(ctx context.Context, file *os.File, content io.Reader) (size int64, err error) {
	buffer := make([]byte, streamBuffer)
	for {
		if ctx.Err() != nil {
			return size, ctx.Err()
		}
		n, err := content.Read(buffer)
		if _, failed := file.Write(buffer[:n]); failed != nil {
			return size, failed
		}
		size += int64(n)
		if errors.Is(err, io.EOF) {
			return size, nil
		}
		if err != nil {
			return size, err
		}
	}
}

// diskError returns the error of the worker's disk, which may have room again later. It does not name the worker's directory.
func (s *RowSource) diskError(err error) error {
	cause := err
	if failed, ok := errors.AsType[*fs.PathError](err); ok {
		cause = failed.Err
	}
	failure := &tool.Error{
		Kind: interpreter.KindTool, Class: interpreter.ClassRetryable, Err: err,
		Message: fmt.Sprintf("%s cannot be unpacked to the worker's disk: %s", s.What, cause),
	}
	if errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG) {
		failure.Type = "no_space"
	}
	return failure
}

// closedWith is an unpacked member of an archive that is closed with the file that has the archive.
type closedWith struct {
	io.ReadCloser

	file *os.File
}

func (c *closedWith) Close() error { return errors.Join(c.ReadCloser.Close(), c.file.Close()) }
