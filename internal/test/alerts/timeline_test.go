package alerts_test

import (
	"context"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	"github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"
	"github.com/stretchr/testify/require"
	"gopkg.in/yaml.v3"
)

// interval is the time between two scrapes.
const interval = 15 * time.Second

// timeline is what a Prometheus has scraped: real answers of real workers, at times that the test sets.
type timeline struct {
	t      *testing.T
	now    time.Time
	series map[uint64]*seriesOfScrapes
	rules  map[string]rule
	engine *promql.Engine
	// later is added to ages as they are scraped: as if the workers had been asked then.
	later time.Duration
}

type seriesOfScrapes struct {
	labels  labels.Labels
	samples []chunks.Sample
}

type sample struct {
	at    int64 // milliseconds since 1970
	value float64
}

func (s sample) T() int64                      { return s.at }
func (s sample) ST() int64                     { return 0 }
func (s sample) F() float64                    { return s.value }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }

type rule struct {
	expr string
	hold time.Duration
}

func newTimeline(t *testing.T) *timeline {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "docs", "operations", "alerts.yaml"))
	require.NoError(t, err)
	var file struct {
		Groups []struct {
			Rules []struct{ Alert, Expr, For string }
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &file))
	rules := map[string]rule{}
	for _, group := range file.Groups {
		for _, one := range group.Rules {
			hold := time.Duration(0)
			if one.For != "" {
				hold, err = time.ParseDuration(one.For)
				require.NoError(t, err)
			}
			rules[one.Alert] = rule{one.Expr, hold}
		}
	}
	return &timeline{
		t: t, now: time.Now().Truncate(time.Second), series: map[uint64]*seriesOfScrapes{}, rules: rules,
		engine: promql.NewEngine(promql.EngineOpts{
			Logger: promslog.NewNopLogger(), MaxSamples: 10_000_000, Timeout: time.Minute, LookbackDelta: 5 * time.Minute, EnableAtModifier: true,
		}),
	}
}

// add adds a sample of a series at the present time.
func (l *timeline) add(named labels.Labels, v float64) {
	key := named.Hash()
	if l.series[key] == nil {
		l.series[key] = &seriesOfScrapes{labels: named}
	}
	l.series[key].samples = append(l.series[key].samples, sample{l.now.UnixMilli(), v})
}

// scrape scrapes instances by their URLs, and goes on to the next scrape. What an instance no longer has ends, as
// Prometheus marks it.
func (l *timeline) scrape(instances map[string]string) {
	l.t.Helper()
	for instance, url := range instances {
		families, err := scraped(url)
		up := 1.0
		if err != nil {
			up = 0
		}
		seen := map[uint64]bool{}
		put := func(name string, pairs []*dto.LabelPair, v float64) {
			builder := labels.NewBuilder(labels.FromStrings("__name__", name, "instance", instance, "job", "reprise"))
			for _, pair := range pairs {
				builder.Set(pair.GetName(), pair.GetValue())
			}
			named := builder.Labels()
			seen[named.Hash()] = true
			l.add(named, v)
		}
		put("up", nil, up)
		for name, family := range families {
			for _, metric := range family.GetMetric() {
				v := metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
				if strings.HasSuffix(name, "_age_seconds") && v > 0 {
					v += l.later.Seconds()
				}
				if metric.GetHistogram() == nil {
					put(name, metric.GetLabel(), v)
				}
			}
		}
		for key, one := range l.series {
			if one.labels.Get("instance") == instance && !seen[key] && !value.IsStaleNaN(one.samples[len(one.samples)-1].F()) {
				l.add(one.labels, math.Float64frombits(value.StaleNaN))
			}
		}
	}
	l.now = l.now.Add(interval)
}

// last scrapes for so long.
func (l *timeline) last(during time.Duration, instances map[string]string) {
	l.t.Helper()
	for end := l.now.Add(during); l.now.Before(end); {
		l.scrape(instances)
	}
}

func scraped(url string) (map[string]*dto.MetricFamily, error) {
	response, err := http.Get(url)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	textParser := expfmt.NewTextParser(model.LegacyValidation)
	return textParser.TextToMetricFamilies(response.Body)
}

// query evaluates an expression at a time: the values by the labels without instance and job.
func (l *timeline) query(expr string, at time.Time) map[string]float64 {
	l.t.Helper()
	query, err := l.engine.NewInstantQuery(l.t.Context(), l, nil, expr, at)
	require.NoError(l.t, err)
	defer query.Close()
	result := query.Exec(l.t.Context())
	require.NoError(l.t, result.Err, expr)
	found := map[string]float64{}
	vector, err := result.Vector()
	require.NoError(l.t, err)
	for _, one := range vector {
		found[one.Metric.String()] = one.F
	}
	return found
}

// firing is what an alert fires for now: what its expression has had at each evaluation for as long as the alert waits.
func (l *timeline) firing(alert string) map[string]float64 {
	l.t.Helper()
	require.Contains(l.t, l.rules, alert)
	of, latest := l.rules[alert], l.now.Add(-interval)
	firing := l.query(of.expr, latest)
	for at := latest.Add(-of.hold); at.Before(latest); at = at.Add(interval) {
		then := l.query(of.expr, at)
		for labels := range firing {
			if _, held := then[labels]; !held {
				delete(firing, labels)
			}
		}
	}
	return firing
}

// Querier reads the timeline, as the engine wants.
func (l *timeline) Querier(_, _ int64) (storage.Querier, error) { return timelineQuerier{l}, nil }

type timelineQuerier struct{ *timeline }

func (q timelineQuerier) Select(_ context.Context, _ bool, _ *storage.SelectHints, matchers ...*labels.Matcher) storage.SeriesSet {
	found := &seriesList{at: -1}
	for _, one := range q.series {
		matches := true
		for _, matcher := range matchers {
			matches = matches && matcher.Matches(one.labels.Get(matcher.Name))
		}
		if matches {
			found.all = append(found.all, storage.NewListSeries(one.labels, one.samples))
		}
	}
	return found
}

func (timelineQuerier) LabelValues(context.Context, string, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (timelineQuerier) LabelNames(context.Context, *storage.LabelHints, ...*labels.Matcher) ([]string, annotations.Annotations, error) {
	return nil, nil, nil
}

func (timelineQuerier) Close() error { return nil }

type seriesList struct {
	all []storage.Series
	at  int
}

func (s *seriesList) Next() bool                        { s.at++; return s.at < len(s.all) }
func (s *seriesList) At() storage.Series                { return s.all[s.at] }
func (s *seriesList) Err() error                        { return nil }
func (s *seriesList) Warnings() annotations.Annotations { return nil }

// metricNames are the metrics that the expression of a rule reads.
func metricNames(t *testing.T, expr string) (names []string) {
	t.Helper()
	parsed, err := parser.NewParser(parser.Options{}).ParseExpr(expr)
	require.NoError(t, err)
	for _, selector := range parser.ExtractSelectors(parsed) {
		for _, matcher := range selector {
			if matcher.Name == "__name__" && !strings.HasPrefix(matcher.Value, "up") {
				names = append(names, matcher.Value)
			}
		}
	}
	return names
}
