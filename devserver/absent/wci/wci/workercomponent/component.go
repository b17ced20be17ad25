// Package workercomponent adds no workflows to the server's own workers.
package workercomponent

import "go.uber.org/fx"

// Module is empty.
var Module = fx.Options()
