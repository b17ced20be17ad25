package serve_test

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"reprise/internal/base/childproc"
	"reprise/internal/base/seal"
	"reprise/internal/program/serve"
	"reprise/internal/test/testenv"
)

// killedVariable has a test's binary serve until it has read an answer, and die then:
// "before" or "after" it has told the workflow.
const killedVariable = "REPRISE_TEST_SERVE_KILLED"

// width is how many tests run at once: most of their time they wait for workers.
const width = 4

func TestMain(m *testing.M) {
	if moment := os.Getenv(killedVariable); moment != "" {
		if err := serveUntilKilled(moment); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		os.Exit(1)
	}
	testenv.RunInParallel(width)
	testenv.Main(m)
}

func serveUntilKilled(moment string) error {
	temporal, err := client.Dial(client.Options{HostPort: os.Getenv("TEST_SERVER"), Namespace: os.Getenv("TEST_NAMESPACE")})
	if err != nil {
		return err
	}
	keys, err := seal.Parse(os.Getenv("TEST_KEY"))
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", os.Getenv("TEST_LISTEN"))
	if err != nil {
		return err
	}
	return serve.New(serve.Options{Client: mortalClient{temporal, moment}, Keys: keys}).Run(context.Background(), listener, nil)
}

// mortalClient kills its process.
type mortalClient struct {
	client.Client
	moment string
}

func (m mortalClient) UpdateWorkflow(ctx context.Context, options client.UpdateWorkflowOptions) (client.WorkflowUpdateHandle, error) {
	if m.moment == "after" {
		if handle, err := m.Client.UpdateWorkflow(ctx, options); err != nil || handle.Get(ctx, nil) != nil {
			return handle, err
		}
	}
	if self, err := os.FindProcess(os.Getpid()); err == nil {
		_ = self.Kill()
	}
	select {}
}

// TestServeIsKilled between taking an answer and telling it, or between telling it and
// saying so: the caller sees that, repeats it, and it counts once.
func TestServeIsKilled(t *testing.T) {
	t.Parallel()
	for moment, again := range map[string]int{"before": http.StatusAccepted, "after": http.StatusOK} {
		t.Run(moment, func(t *testing.T) {
			t.Parallel()
			a := newAsking(t)
			run, token := a.ask("killed", webhook)

			free, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			address := free.Addr().String()
			require.NoError(t, free.Close())
			child := exec.Command(os.Args[0])
			child.Env = append(os.Environ(), killedVariable+"="+moment, "TEST_SERVER="+a.env.Address, "TEST_NAMESPACE="+a.env.Namespace,
				"TEST_KEY="+a.key, "TEST_LISTEN="+address)
			process, err := childproc.Start(child)
			require.NoError(t, err)
			t.Cleanup(process.Kill)
			require.Eventually(t, func() bool {
				connection, err := net.Dial("tcp", address)
				if err == nil {
					_ = connection.Close()
				}
				return err == nil
			}, patience, 20*time.Millisecond)

			failure := `{"message": "no disk"}`
			_, err = http.Post("http://"+address+"/v1/callbacks/"+token+"/fail", "application/json", strings.NewReader(failure))
			require.Error(t, err, "the connection breaks")
			testenv.Receive(t, process.Exited, "the end of the server")
			if moment == "after" {
				a.token() // of the next attempt, so that the answer has had its effect
			}
			repeated := a.callback(token, "fail", failure)
			require.Equal(t, again, repeated.status, string(repeated.body))
			if moment == "before" {
				a.token()
			}
			require.Equal(t, http.StatusOK, a.callback(token, "fail", failure).status)
			require.Empty(t, a.told, "one failure makes one more attempt")
			require.NoError(t, a.env.Client().CancelWorkflow(t.Context(), run.GetID(), ""))
			require.EqualValues(t, "cancelled", a.ends(run).Status)
		})
	}
}
