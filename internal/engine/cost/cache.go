package cost

import (
	"encoding/json"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/clusterawsadm/clusterawsadm/internal/files"
)

// fresh is how long a price in the cache is not asked for again.
const fresh = 24 * time.Hour

// Cache has the prices of one region, in a file. A nil Cache has none.
type Cache struct {
	file string
	now  func() time.Time

	mu      sync.Mutex
	prices  map[string]cached
	changed bool
}

// cached is a price in the file.
type cached struct {
	Price
	None bool      `json:"none,omitempty"` // the price list does not have the product
	At   time.Time `json:"at"`             // when AWS was asked
}

// cacheFile is the content of the file. A file that cannot be read is an empty one.
type cacheFile struct {
	Version int               `json:"version"`
	Prices  map[string]cached `json:"prices"`
}

const cacheVersion = 1

// OpenCache opens the cache of a region in a folder; nil if the folder is "".
func OpenCache(dir, region string, now func() time.Time) *Cache {
	if dir == "" {
		return nil
	}
	c := &Cache{file: filepath.Join(dir, "prices-"+filepath.Base(region)+".json"), now: now, prices: map[string]cached{}}
	var f cacheFile
	data, err := os.ReadFile(c.file)
	if err == nil && json.Unmarshal(data, &f) == nil && f.Version == cacheVersion && f.Prices != nil {
		c.prices = f.Prices
	}
	return c
}

// key is the key of a product in the file.
func (p Product) key() string {
	return p.Service + "\n" + p.Usage + "\n" + p.Attributes + "\n" + p.Spot
}

// get returns what is known of a price, and whether it is fresh.
func (c *Cache) get(p Product) (x cached, found, isFresh bool) {
	if c == nil {
		return x, false, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	x, found = c.prices[p.key()]
	age := c.now().Sub(x.At)
	return x, found, found && age >= 0 && age < fresh
}

// put stores a price, or that there is none.
func (c *Cache) put(p Product, price Price, none bool) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.prices[p.key()] = cached{price, none, c.now()}
	c.changed = true
}

// save writes the file. Another process reads the old one or the new one, and no part. A
// cache that cannot be written is not an error.
func (c *Cache) save() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.changed {
		return
	}
	data, err := json.Marshal(cacheFile{cacheVersion, c.prices})
	c.changed = err != nil || files.Replace(c.file, data, files.Private) != nil
}
