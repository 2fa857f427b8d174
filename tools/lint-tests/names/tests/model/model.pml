proctype ModelStep() { skip }
