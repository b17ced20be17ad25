package host

import (
	"go.temporal.io/sdk/client"

	"reprise/internal/payload"
)

// ClientOptions are those of a worker's client, which keeps large values in the
// store; nil is none.
func ClientOptions(store *payload.Store, options client.Options) client.Options {
	return store.Use(options)
}
