package activities

import "context"

// MaskFor resolves a connection as an attempt does and gives what masks its
// secrets.
func MaskFor(ctx context.Context, res Resources, connection string) (context.Context, func(string) string) {
	ctx, secrets := withSecrets(ctx)
	if _, err := res.withDefaults().connection(ctx, connection); err != nil {
		panic(err)
	}

	return ctx, secrets.mask
}

// NewTransport is the transport of the http tool on connections that dial
// makes.
var NewTransport = newTransport
