/** Which module may import from which. A module is a folder of `src/`; the list of a module is everything below it. */

const BASE = ['base']
const CONTRACT = [...BASE, 'contract']
const CONFIG = [...CONTRACT, 'config']
const TELEMETRY = [...CONFIG, 'telemetry']
const GROUND = [...TELEMETRY, 'store', 'http']
const CLUSTER = [...GROUND, 'certificates', 'cluster']
const ACCOUNTS = [...CLUSTER, 'accounts']
const FLEET = [...ACCOUNTS, 'fleet']
const DATABASES = [...FLEET, 'databases']
const QUEUE = [...ACCOUNTS, 'queue']
const WORKFLOW = [...QUEUE, 'workflow']

/** What each module may use besides itself. Files directly in `src/` and the modules of `TOP` may use everything. */
export const BELOW = {
  base: [],
  contract: BASE,
  config: CONTRACT,
  telemetry: CONFIG,
  opentelemetry: TELEMETRY,
  store: TELEMETRY,
  http: TELEMETRY,
  certificates: BASE,
  objects: CONFIG,
  cluster: [...GROUND, 'certificates'],
  accounts: CLUSTER,
  activity: CLUSTER,
  fleet: ACCOUNTS,
  databases: [...FLEET, 'objects'],
  gateway: DATABASES,
  queue: ACCOUNTS,
  workflow: QUEUE,
  bulk: WORKFLOW,
  alerts: [...DATABASES, 'queue'],
  'service-backup': FLEET,
}

/** Modules that may import from every module. Only they may import from each other. */
export const TOP = ['server', 'cli', 'testkit']

/** Folders with this name are catalogues in every module. */
export const OPEN_FOLDER = 'transactions'

/** Folders whose files are imported one by one, because they are catalogues: one file per subject or module. */
export const OPEN_PLACES = [
  'src/contract/',
  'src/store/schema/',
  'src/store/incarnation.js',
  'src/store/operation.js',
  'src/store/statement.js',
  'src/store/query.js',
  'src/store/dialect.js',
  'src/store/checksum.js',
  'src/store/maintenance.js',
  'src/cluster/key-partition.js',
  'src/accounts/credentials.js',
  // This file runs before any other module is loaded.
  'src/base/compiled-program.js',
]
