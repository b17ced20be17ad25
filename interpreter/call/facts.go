package call

// Facts identify a call in metrics, logs and spans. They hold no data of the run.
type Facts struct {
	Playbook string
	Step     string
	Visit    int
	Index    *int   // iteration, nil without a loop
	Tool     string // "" if it cannot be rendered
	Place    string // of the sink; "" for the call of a step
	Page     int    // page that the sink writes
}
