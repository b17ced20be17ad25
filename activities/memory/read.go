package memory

import (
	"bytes"
	"context"
	"errors"
	"io"
)

// ErrTooLarge stops the reading of a body that is over the limit.
var ErrTooLarge = errors.New("the body is over the limit")

// ReadAll reads what is most bytes long, or limit bytes where it turns out to be
// longer.
func ReadAll(ctx context.Context, body io.Reader, most, limit int64) ([]byte, error) {
	content := make([]byte, 0, min(most, freeBytes)+bytes.MinRead)
	for {
		n, err := body.Read(content[len(content):cap(content)])
		content = content[:len(content)+n]
		switch {
		case int64(len(content)) > limit:
			return content[:limit], ErrTooLarge
		case errors.Is(err, io.EOF):
			return content, nil
		case err != nil:
			return content, err
		case len(content) < cap(content):
			continue
		}
		if err := AcquireBody(ctx, int64(len(content)), most); err != nil {
			return content, err
		}
		larger := max(min(growth*cap(content), int(most)), len(content)) + bytes.MinRead
		content = append(make([]byte, 0, larger), content...)
	}
}
