package call

// Facts identify a call in metrics, logs and spans. They hold no data of the run.
type Facts struct {
	Playbook string
	Step     string
	Visit    int
	Index    *int   // iteration, nil without a loop
	Tool     string // "" where it cannot be known
	Place    string // of a sink, "" for a step's own call
	Page     int    // of a sink
}
