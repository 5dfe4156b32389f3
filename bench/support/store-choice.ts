/** The store that Homeport uses in a benchmark: `npm run bench <name> -- --store postgres`. Default: `sqlite`. */
export const benchStore: 'sqlite' | 'postgres' = process.env.HOMEPORT_BENCH_STORE === 'postgres' ? 'postgres' : 'sqlite'
