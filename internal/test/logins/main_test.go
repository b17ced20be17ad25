// Package logins kills workers and servers at the points of an exchange of a refresh token.
package logins_test

import (
	"context"
	"os"
	"strings"
	"syscall"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"reprise/internal/test/testenv"
	"reprise/internal/test/testenv/testworker"
)

// Variables of a worker that kills itself: at which point, and the file that says that one has.
const (
	pointVariable = "LOGINS_KILL_AT"
	onceVariable  = "LOGINS_KILLED"
)

// width is how many tests run at once: most of their time they wait for the server to notice that a worker is dead.
const width = 6

func TestMain(m *testing.M) {
	testworker.Main(killAt(os.Getenv(pointVariable), os.Getenv(onceVariable)))
	testenv.RunInParallel(width)
	testenv.Main(m)
}

// The points at which a worker kills itself, by what it sends to the server then.
var ownPoints = map[string]struct {
	method, contains string
	after            bool
}{
	"asks":     {"ExecuteMultiOperation", "login_token", false},
	"marks":    {"RecordActivityTaskHeartbeat", `"sent":true`, false},
	"marked":   {"RecordActivityTaskHeartbeat", `"sent":true`, true},
	"answered": {"RespondActivityTaskCompleted", `"end":"token"`, false},
	"reported": {"RespondActivityTaskCompleted", `"end":"token"`, true},
}

// killAt kills this process at a point, unless another one was killed.
func killAt(point, once string) grpc.UnaryClientInterceptor {
	at, own := ownPoints[point]
	return func(ctx context.Context, method string, request, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption) error {
		if !own || !strings.HasSuffix(method, at.method) || !strings.Contains(sentText(request), at.contains) {
			return invoke(ctx, method, request, reply, cc, options...)
		}
		if at.after {
			_ = invoke(ctx, method, request, reply, cc, options...)
		}
		if file, err := os.OpenFile(once, os.O_CREATE|os.O_EXCL, 0o600); err == nil {
			_ = file.Close()
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		if at.after {
			return nil
		}
		return invoke(ctx, method, request, reply, cc, options...)
	}
}

// sentText is a request as text, in which the data of payloads is plain.
func sentText(request any) string {
	message, ok := request.(proto.Message)
	if !ok {
		return ""
	}
	data, _ := proto.Marshal(message) // texts of a message are plain in it
	text, _ := protojson.Marshal(message)
	return string(data) + string(text)
}
