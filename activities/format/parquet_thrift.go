package format

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// thriftReader reads Thrift's compact protocol, in which Parquet has its footer and the headers of its pages. The library trusts the sizes and the depth
// that these name, which are checked here first. What is wrong is a panic of errThrift, which readFields returns.
type thriftReader struct {
	in      []byte
	at      int
	decodes bool // what is read is wanted, not only whether it can be read
}

// thriftFields are the fields of a struct by their numbers: numbers as int, booleans, and structs; texts and lists are left out.
type thriftFields map[int]any

var errThrift = errors.New("its metadata is damaged")

// deepestThrift bounds how deep structs are nested. Parquet has 7 levels; without a bound, a stack would overflow, which ends the worker.
const deepestThrift = 32

// readFields reads a struct. rest is what is behind it.
func readFields(in []byte, decodes bool) (read thriftFields, rest []byte, err error) {
	defer func() {
		switch failed := recover().(type) {
		case nil:
		case error:
			err = fmt.Errorf("%w: %w", errThrift, failed)
		default:
			err = errThrift
		}
	}()
	r := &thriftReader{in: in, decodes: decodes}
	read = r.readStruct(0)
	return read, in[r.at:], nil
}

func (r *thriftReader) readByte() byte {
	r.at++
	return r.in[r.at-1]
}

func (r *thriftReader) readVarint() uint64 {
	value, n := binary.Uvarint(r.in[r.at:])
	if n <= 0 {
		panic(errThrift)
	}
	r.at += n
	return value
}

func (r *thriftReader) readZigzag() int {
	value := r.readVarint()
	return int(value>>1) ^ -int(value&1) //nolint:gosec // as the protocol has it
}

func (r *thriftReader) readStruct(depth int) thriftFields {
	if depth > deepestThrift {
		panic(errThrift)
	}
	var found thriftFields
	if r.decodes {
		found = thriftFields{}
	}
	for last := 0; ; {
		head := r.readByte()
		if head == 0 {
			return found
		}
		if delta := int(head >> 4); delta > 0 {
			last += delta
		} else {
			last = r.readZigzag()
		}
		value := r.readValue(head&15, depth, false)
		if r.decodes && value != nil {
			found[last] = value
		}
	}
}

// readValue reads a value of one of the protocol's types. A boolean has a byte of its own only in a list.
func (r *thriftReader) readValue(kind byte, depth int, inList bool) any {
	const (
		isTrue, isFalse, isByte, isInt16, isInt32, isInt64, isDouble, isBinary, isList, isSet, isMap, isStruct = 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12
	)
	switch kind {
	case isTrue, isFalse:
		if inList {
			return r.readByte() == isTrue
		}
		return kind == isTrue
	case isByte:
		return int(int8(r.readByte())) //nolint:gosec // as the protocol has it
	case isInt16, isInt32, isInt64:
		return r.readZigzag()
	case isDouble:
		r.skipBytes(8)
	case isBinary:
		r.skipBytes(r.readVarint())
	case isList, isSet:
		head := r.readByte()
		size := uint64(head >> 4)
		if size == 15 {
			size = r.readVarint()
		}
		if size > uint64(len(r.in)-r.at) { // each element has a byte
			panic(errThrift)
		}
		for range size {
			r.readValue(head&15, depth+1, true)
		}
	case isStruct:
		if read := r.readStruct(depth + 1); r.decodes {
			return read
		}
	case isMap:
		panic(errThrift) // Parquet has none
	default:
		panic(errThrift)
	}
	return nil
}

func (r *thriftReader) skipBytes(n uint64) {
	if n > uint64(len(r.in)-r.at) { //nolint:gosec // at is within
		panic(errThrift)
	}
	r.at += int(n) //nolint:gosec // it is no more than there is
}

// fieldNumber is a field that is a number; 0 where it is not there.
func (f thriftFields) fieldNumber(of int) int {
	n, _ := f[of].(int)
	return n
}

// fieldStruct is a field that is a struct; nil where it is not there.
func (f thriftFields) fieldStruct(of int) thriftFields {
	s, _ := f[of].(thriftFields)
	return s
}
