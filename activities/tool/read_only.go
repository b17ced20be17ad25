package tool

import "context"

type readOnlyKey struct{}

// ReadOnly marks an attempt that must change nothing. A tool that does not know what its attempt
// changes leaves that to the other system, for example to a read-only transaction.
func ReadOnly(ctx context.Context) context.Context {
	return context.WithValue(ctx, readOnlyKey{}, true)
}

// IsReadOnly reports whether an attempt must change nothing.
func IsReadOnly(ctx context.Context) bool {
	readOnly, _ := ctx.Value(readOnlyKey{}).(bool)
	return readOnly
}

// ErrReadOnly returns the final error of an attempt that writes rows and must change nothing.
func ErrReadOnly(step string) error {
	return ConfigErrorf("step %q writes rows, but this attempt may only read", step)
}
