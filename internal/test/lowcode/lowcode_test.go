// Package lowcode compares playbooks that were made of low-code manifests with what the manifests mean: a reader of
// manifests, which is written from the schema of their components and knows nothing of the conversion, reads each stream
// from an API that is made up for it. The playbook then has to ask the same of that API, and to write the same rows.
package lowcode_test

import (
	"flag"
	"hash/fnv"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"reprise/internal/test/testenv"
	"reprise/internal/test/testenv/testworker"
)

var (
	folderFlag     = flag.String("lowcode.manifests", "", "folder with a folder for each connector, which has a manifest.yaml")
	seedFlag       = flag.String("lowcode.seed", "20261129", "chooses connectors and streams")
	connectorsFlag = flag.Int("lowcode.connectors", 30, "connectors to play")
	streamsFlag    = flag.Int("lowcode.streams", 2, "streams of each to play")
	onlyFlag       = flag.String("lowcode.only", "", "connector/stream to play alone")
	outFlag        = flag.String("lowcode.out", "", "folder for the playbooks that differ")
)

func TestMain(m *testing.M) {
	testworker.Main()
	testenv.RunInParallel(8)
	testenv.Main(m)
}

func writeFile(t *testing.T, path string, data []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, data, 0o600))
}

// tally counts what came of plays.
type tally struct {
	mu         sync.Mutex
	played     []string
	told       []string // that differ where the playbook says so
	silent     []string
	unplayable []string
	requests   int
	rows       int
}

func (c *tally) add(t *testing.T, name string, of verdict) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case of.unplayable != "":
		c.unplayable = append(c.unplayable, name+": "+of.unplayable)
		return
	case len(of.problems) == 0:
		c.requests += of.requests
		c.rows += of.rows
		c.played = append(c.played, name)
		return
	case len(of.gaps) > 0 || of.warnings != "":
		c.told = append(c.told, name+": "+strings.Join(of.gaps, "; ")+of.warnings)
	default:
		c.silent = append(c.silent, name)
	}
	t.Logf("%s differs in run %d:\n%s\n%s\nworkload %s", name, of.runs, strings.Join(of.problems[:min(16, len(of.problems))], "\n"), strings.Join(of.gaps, "\n"), of.workload)
	if *outFlag != "" {
		writeFile(t, filepath.Join(*outFlag, strings.ReplaceAll(name, "/", "_")+".yaml"), []byte(of.playbook))
	}
}

// fixtures are streams of the small manifests of the conversion's own tests, which TestFixtures plays; those with a number
// are played while that many workers are killed.
var fixtures = map[string]int{
	"cursor/messages": 0, "page_increment/albums": 0, "accounts/orders": 0, "offset/users": 0, "next_link/repos": 0, "parent/tasks": 2, "slices/visits": 1, "post_body/search": 0,
	"errors/jobs": 0, "counted/payments": 0, "transformations/contacts": 0, "days/episodes": 0, "parent_incremental/notes": 0,
	"attributes/alerts": 0, "attributes/logs": 0, "filters/messages": 0, "composed/subjects": 0,
}

// TestFixtures plays small manifests.
func TestFixtures(t *testing.T) {
	t.Parallel()
	folder := filepath.Join("..", "..", "program", "connector", "testdata", "manifests")
	count := &tally{}
	t.Run("streams", func(t *testing.T) {
		for name, kills := range fixtures {
			connector, stream, _ := strings.Cut(name, "/")
			data, err := os.ReadFile(filepath.Join(folder, connector+".yaml"))
			require.NoError(t, err)
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				count.add(t, name, play{t: t, connector: connector, stream: stream, data: data, kills: kills}.run())
			})
		}
	})
	require.Empty(t, count.silent)
	require.Empty(t, count.told)
	require.Empty(t, count.unplayable)
	require.NotEmpty(t, count.played)
}

// streamsOf are the names of the streams of a manifest.
func streamsOf(data []byte) (names []string) {
	manifest, err := loadManifest(data)
	if err != nil {
		return nil
	}
	for _, stream := range manifest.list("streams") {
		if name := stream.text("name"); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// TestConnectors plays streams of the connectors in a folder.
func TestConnectors(t *testing.T) {
	t.Parallel()
	if *folderFlag == "" {
		t.Skip("-lowcode.manifests names no folder")
	}
	paths, err := filepath.Glob(filepath.Join(*folderFlag, "*", "manifest.yaml"))
	require.NoError(t, err)
	sortByDraw(paths)
	count := &tally{}
	var mu sync.Mutex
	connectors := 0
	t.Run("connectors", func(t *testing.T) {
		for _, path := range paths {
			name := strings.TrimPrefix(filepath.Base(filepath.Dir(path)), "source-")
			if only, _, _ := strings.Cut(*onlyFlag, "/"); only != "" && only != name {
				continue
			}
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				mu.Lock()
				full := connectors >= *connectorsFlag
				mu.Unlock()
				if full {
					t.Skip("enough")
				}
				if playConnector(t, path, name, count) > 0 {
					mu.Lock()
					connectors++
					mu.Unlock()
				}
			})
		}
	})
	for _, line := range count.unplayable {
		t.Log("not played: " + line)
	}
	for _, line := range count.told {
		t.Log("differs where it says so: " + line)
	}
	t.Logf("%d connectors; %d streams the same, %d requests, %d rows; %d differ and say so, %d differ in silence; %d not played",
		connectors, len(count.played), count.requests, count.rows, len(count.told), len(count.silent), len(count.unplayable))
	require.Empty(t, count.silent)
}

// playConnector plays streams of a connector until there are enough, and returns how many.
func playConnector(t *testing.T, path, name string, count *tally) (played int) {
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	streams := streamsOf(data)
	sortByDraw(streams)
	for _, stream := range streams {
		if _, only, has := strings.Cut(*onlyFlag, "/"); has && only != stream {
			continue
		}
		if played >= *streamsFlag {
			break
		}
		read := func(file string) ([]byte, error) { return os.ReadFile(filepath.Join(filepath.Dir(path), file)) }
		of := play{t: t, connector: name, stream: stream, data: data, read: read}.run()
		if of.unplayable == "" {
			played++
		}
		count.add(t, name+"/"+stream, of)
	}
	return played
}

// sortByDraw brings texts into an order that the seed says.
func sortByDraw(texts []string) {
	place := func(text string) uint64 {
		h := fnv.New64a()
		_, _ = h.Write([]byte(*seedFlag + text))
		return h.Sum64()
	}
	sort.Slice(texts, func(i, j int) bool { return place(texts[i]) < place(texts[j]) })
}
