package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"reprise/internal/base/connect"
	"reprise/internal/base/exitcode"
	"reprise/internal/program/start"
	"reprise/internal/test/testenv"
	"reprise/starter/cli"
	"reprise/starter/operate"
	"reprise/starter/schedule"
	"reprise/starter/session"
	"reprise/workflows/protocol"
)

// newNamespace registers a namespace that knows no search attributes yet.
func newNamespace(t *testing.T, env *testenv.Env) string {
	t.Helper()
	name := env.NewTaskQueue()
	_, err := env.Client().WorkflowService().RegisterNamespace(t.Context(), &workflowservice.RegisterNamespaceRequest{
		Namespace: name, WorkflowExecutionRetentionPeriod: durationpb.New(24 * time.Hour),
	})
	require.NoError(t, err)
	require.Eventually(t, func() bool { // a new namespace is known after some seconds
		_, err := env.Client().OperatorService().ListSearchAttributes(t.Context(),
			&operatorservice.ListSearchAttributesRequest{Namespace: name})
		return err == nil
	}, patience, 50*time.Millisecond)
	return name
}

// setupOf runs the command and gives what it said.
func setupOf(t *testing.T, wanted int, args ...string) (operate.SetupReport, string) {
	t.Helper()
	var out, errs bytes.Buffer
	got := Main(t.Context(), append([]string{"setup"}, args...), cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
	require.Equal(t, wanted, got, out.String()+errs.String())
	var report operate.SetupReport
	if strings.HasPrefix(out.String(), "{") {
		require.NoError(t, json.Unmarshal(out.Bytes(), &report))
	}
	return report, out.String() + errs.String()
}

func TestSetup(t *testing.T) {
	t.Parallel()
	env := testenv.Temporal(t)
	at := []string{"--address", env.Address, "--namespace", newNamespace(t, env), "--payload-store", ""}
	asJSON := append(at, "--output", "json")
	all := []string{"RepriseDeadLetters", "RepriseLabels", "RepriseNextRetry", "RepriseOrigin", "ReprisePlaybook", "RepriseStatus"}
	require.Len(t, protocol.SearchAttributes(), len(all))

	for range 2 { // looking changes nothing
		report, _ := setupOf(t, exitcode.Failed, append(asJSON, "--check")...)
		require.Equal(t, all, report.Missing)
		require.Empty(t, report.Present)
		require.Len(t, report.ByHand, len(all))
		require.Contains(t, report.ByHand[0], "--name RepriseDeadLetters --type Int")
		require.Contains(t, report.ByHand[1], "--name RepriseLabels --type KeywordList")
		require.Contains(t, report.ByHand[2], "--name RepriseNextRetry --type Datetime")
	}
	report, _ := setupOf(t, exitcode.OK, asJSON...)
	require.Equal(t, all, report.Added)
	require.Empty(t, report.Missing)
	require.Empty(t, report.ByHand)
	require.Eventually(t, func() bool {
		report, _ = setupOf(t, exitcode.OK, asJSON...)
		return len(report.Present) == len(all)
	}, patience, 50*time.Millisecond)
	require.Empty(t, report.Added)
	_, said := setupOf(t, exitcode.OK, append(at, "--check")...)
	require.Regexp(t, `│ RepriseStatus +│ Keyword +│ there +│`, said)
	setupOf(t, exitcode.Usage, "--output", "xml")
	setupOf(t, exitcode.NoServer, "--address", "127.0.0.1:1")
}

// refusing is a client of which the server refuses what concerns operators.
func refusing(t *testing.T, env *testenv.Env, namespace string, code codes.Code, methods string) client.Client {
	t.Helper()
	return env.Dial(t, client.Options{Namespace: namespace, ConnectionOptions: client.ConnectionOptions{
		DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(func(
			ctx context.Context, method string, in, out any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, options ...grpc.CallOption,
		) error {
			if strings.Contains(method, "OperatorService/"+methods) {
				return status.Error(code, "no such luck")
			}
			return invoke(ctx, method, in, out, cc, options...)
		})},
	}})
}

// TestSetupWithoutRights: what is missing is told even where it cannot be added.
func TestSetupWithoutRights(t *testing.T) {
	t.Parallel()
	env := testenv.Temporal(t)
	namespace := newNamespace(t, env)
	for _, test := range []struct {
		code    codes.Code
		methods string
		said    string
		byHand  string
	}{
		{codes.PermissionDenied, "Add", "this client may not add search attributes", "temporal operator search-attribute create"},
		{codes.PermissionDenied, "", "this client may not add search attributes", "temporal operator search-attribute create"},
		{codes.Unimplemented, "", "the server cannot add search attributes", "tcld namespace search-attributes add"},
	} {
		var out bytes.Buffer
		streams := cli.Streams{Out: &out, Err: &out}
		s := &session.Session{Client: refusing(t, env, namespace, test.code, test.methods), Address: env.Address, Namespace: namespace}
		require.Equal(t, exitcode.Failed, cli.StatusOf(operate.SetupNamespace(t.Context(), streams, s, false, "table")))
		require.Contains(t, out.String(), test.said)
		require.Contains(t, out.String(), test.byHand)
		require.Regexp(t, `│ RepriseStatus +│ Keyword +│ missing +│`, out.String())
	}
	setupOf(t, exitcode.OK, "--address", env.Address, "--namespace", namespace)
	var out bytes.Buffer // what is there can be read without rights
	s := &session.Session{Client: refusing(t, env, namespace, codes.Unimplemented, ""), Address: env.Address, Namespace: namespace}
	require.Eventually(t, func() bool {
		out.Reset()
		return operate.SetupNamespace(t.Context(), cli.Streams{Out: &out, Err: &out}, s, false, "table") == nil
	}, patience, 50*time.Millisecond, &out)
	require.Regexp(t, `│ RepriseStatus +│ Keyword +│ there +│`, out.String())
}

// TestFewerAttributes: where a namespace lacks an attribute that a build before did
// not know, and nobody may add it, runs have the others.
func TestFewerAttributes(t *testing.T) {
	t.Parallel()
	env := testenv.Temporal(t)
	namespace := newNamespace(t, env)
	older := protocol.SearchAttributes()
	delete(older, protocol.NextRetryAttribute)
	for _, c := range []struct {
		there map[string]enums.IndexedValueType
		want  protocol.Input
		says  string
	}{
		{nil, protocol.Input{}, "note: the run gets no search attributes: "},
		{older, protocol.Input{SearchAttributes: true, DeadLetters: true}, "note: the run does not get all search attributes: "},
		{protocol.SearchAttributes(), protocol.Input{SearchAttributes: true, DeadLetters: true, NextRetry: true}, ""},
	} {
		_, err := connect.EnsureAttributes(t.Context(), env.Client(), namespace, c.there)
		require.NoError(t, err)
		require.Eventually(t, func() bool { // they are known after a while
			found, err := connect.CheckAttributes(t.Context(), env.Client(), namespace, c.there)
			return err == nil && len(found.Missing) == 0
		}, patience, 50*time.Millisecond)
		var errs bytes.Buffer
		s := &session.Session{Client: refusing(t, env, namespace, codes.PermissionDenied, "Add"), Namespace: namespace}
		var got protocol.Input
		require.NoError(t, schedule.SubmitSchedule(t.Context(), s, start.Plan{}, cli.Streams{Err: &errs}, func(planned start.Plan) error {
			got = planned.Input
			return nil
		}))
		require.Equal(t, c.want, got)
		require.Equal(t, c.says == "", errs.Len() == 0)
		require.Contains(t, errs.String(), c.says)
	}
}

// TestCommandsWithoutTheirStore: a payload store that is away is a note for who looks at runs, and an error for who starts one
// or prepares the namespace.
func TestCommandsWithoutTheirStore(t *testing.T) {
	t.Parallel()
	env := testenv.Temporal(t)
	away := "file://" + t.TempDir() + "/payloads"
	for args, want := range map[string]int{"list --limit 1": exitcode.OK, "run example:hello.yaml --detach": exitcode.Usage, "setup --check": exitcode.Usage} {
		var out, errs bytes.Buffer
		all := append(strings.Fields(args), "--address", env.Address, "--namespace", env.Namespace, "--payload-store", away)
		got := Main(t.Context(), all, cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
		require.Equal(t, want, got, "%s: %s", args, errs.String())
		require.Contains(t, errs.String(), "open the payload store "+away+": the folder is not a payload store", args)
	}
}
