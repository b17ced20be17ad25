package host

// CgroupBytes is for tests.
var CgroupBytes = cgroupBytes
