package payload

import (
	"context"
	"errors"
	"fmt"
	"io"

	commonpb "go.temporal.io/api/common/v1"
	"gocloud.dev/blob"
	"gocloud.dev/gcerrors"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// bytesOfPart is the size of the parts in which large bodies are stored.
const bytesOfPart = 16 << 20

// PartBytes returns the size of the parts in which a large body is stored.
func (*Store) PartBytes() int64 { return bytesOfPart }

// WriteObject writes content under a key that does not depend on it, encrypted as values are. It replaces what was there, as a whole. The error is a
// *StoreError.
func (s *Store) WriteObject(ctx context.Context, key string, content []byte) error {
	ctx, cancel := context.WithTimeout(ctx, mostTime(int64(len(content))))
	defer cancel()
	if err := s.writeParts(ctx, key, content); err != nil {
		return s.objectError("write", key, err)
	}
	return nil
}

// writeParts writes content as a value. What is not encrypted is not copied, because it may be large.
func (s *Store) writeParts(ctx context.Context, key string, content []byte) error {
	value, err := s.encryption.EncodePayload(&commonpb.Payload{Data: content})
	if err != nil {
		return err
	}
	if len(value.GetMetadata()) > 0 {
		data, err := proto.Marshal(value)
		if err != nil {
			return err
		}
		return s.writeBlob(ctx, key, data)
	}
	head := protowire.AppendVarint(protowire.AppendTag(nil, fieldData, protowire.BytesType), uint64(len(content)))
	bucket, err := s.openToWrite(ctx)
	if err != nil {
		return err
	}
	writing, abandon := context.WithCancel(ctx) // a writer that is closed then leaves nothing
	defer abandon()
	writer, err := bucket.NewWriter(writing, key, writerOptions())
	if err != nil {
		return err
	}
	for _, part := range [][]byte{head, content} {
		if _, err := writer.Write(part); err != nil {
			abandon()
			return errors.Join(err, writer.Close())
		}
	}
	return writer.Close()
}

// ReadObject returns what WriteObject has written; found is false if there is nothing under the key.
func (s *Store) ReadObject(ctx context.Context, key string) (content []byte, found bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, mostTime(bytesOfPart))
	defer cancel()
	bucket, err := s.openBucket(ctx)
	if err != nil {
		return nil, false, err
	}
	data, err := readObject(ctx, bucket, key)
	switch {
	case gcerrors.Code(err) == gcerrors.NotFound:
		return nil, false, nil
	case err != nil:
		return nil, false, s.objectError("read", key, err)
	}
	payload, err := parseObject(data)
	if err == nil {
		payload, err = s.encryption.DecodePayload(payload)
	}
	if err != nil {
		return nil, false, s.objectError("decode", key, err)
	}
	return payload.GetData(), true, nil
}

// readObject reads an object into no more memory than it takes.
func readObject(ctx context.Context, bucket *blob.Bucket, key string) ([]byte, error) {
	reader, err := bucket.NewReader(ctx, key, nil)
	if err != nil {
		return nil, err
	}
	defer func() { _ = reader.Close() }()
	if reader.Size() > maxBlob {
		return nil, fmt.Errorf("%w: it has %d bytes", ErrCorrupt, reader.Size())
	}
	data := make([]byte, reader.Size())
	_, err = io.ReadFull(reader, data)
	return data, err
}

// parseObject returns the value that was written. What is not encrypted is not copied.
func parseObject(data []byte) (*commonpb.Payload, error) {
	if number, kind, head := protowire.ConsumeTag(data); head > 0 && number == fieldData && kind == protowire.BytesType {
		if content, size := protowire.ConsumeBytes(data[head:]); size == len(data)-head {
			return &commonpb.Payload{Data: content}, nil
		}
	}
	payload := &commonpb.Payload{}
	err := proto.Unmarshal(data, payload)
	return payload, err
}

// fieldData is the number of the field data in a Payload.
const fieldData = 2

// RemoveObjects removes all objects whose keys have a prefix.
func (s *Store) RemoveObjects(ctx context.Context, prefix string) error {
	bucket, err := s.openBucket(ctx)
	if err != nil {
		return err
	}
	for all := bucket.List(&blob.ListOptions{Prefix: prefix}); ; {
		object, err := all.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = bucket.Delete(ctx, object.Key)
		}
		if err != nil && gcerrors.Code(err) != gcerrors.NotFound {
			return s.objectError("remove", prefix, err)
		}
	}
}

func (s *Store) objectError(verb, key string, err error) error {
	return &StoreError{Text: fmt.Sprintf("%s %s in the payload store %s: %v", verb, key, s.Name(), err), Err: err}
}
