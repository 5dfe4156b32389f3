/**
 * Variables of the environment that the driver of PostgreSQL takes into account (`pg/lib/connection-parameters.js`), and
 * those of libpq that it ignores. A server that a supervisor starts may have other variables than a shell.
 */
import { parsePostgresUrl } from '../../config/index.js'

/** What the variables of this process mean for the connection to a store; names only, as values may be secret. */
export interface EnvironmentEffect {
  /** Parts that the URL does not have. */
  readonly completing: readonly string[]
  /** Change how the connection is made, or the settings of the session. */
  readonly changing: readonly string[]
  /** People who know `psql` may expect an effect. */
  readonly ignored: readonly string[]
}

const IGNORED = [
  ...['PGHOST', 'PGHOSTADDR', 'PGDATABASE', 'PGSERVICE', 'PGSERVICEFILE', 'PGTARGETSESSIONATTRS', 'PGCONNECT_TIMEOUT'],
  ...['PGSSLROOTCERT', 'PGSSLCERT', 'PGSSLKEY', 'PGSSLCRL', 'PGSSLMINPROTOCOLVERSION', 'PGREQUIRESSL', 'PGREQUIREPEER'],
  ...['PGCHANNELBINDING', 'PGREQUIREAUTH', 'PGGSSENCMODE', 'PGCLIENTENCODING', 'PGTZ', 'PGDATESTYLE', 'PGAPPNAME'],
]

/** Sorts the variables that are set by their effect on a connection to a URL. */
export function environmentEffect(
  url: string,
  environment: Readonly<Record<string, string | undefined>>,
): EnvironmentEffect {
  const target = parsePostgresUrl(url)
  if ('problem' in target || !URL.canParse(target.urls[0])) return { completing: [], changing: [], ignored: [] }
  const has = new URL(target.urls[0])
  const setting = (...names: readonly string[]): boolean => names.some((name) => has.searchParams.has(name))
  const completing = {
    PGUSER: has.username === '' && !setting('user'),
    PGPASSWORD: has.password === '' && !setting('password'),
    PGPASSFILE: has.password === '' && !setting('password') && !environment.PGPASSWORD,
    PGPORT: has.port === '' && !setting('port'),
  }
  const changing = {
    PGOPTIONS: !setting('options'),
    PGSSLMODE: !setting('sslmode', 'ssl', 'sslcert', 'sslkey', 'sslrootcert'),
    PGSSLNEGOTIATION: !setting('sslnegotiation'),
    PGREPLICATION: true,
  }
  const all = { ...completing, ...changing }
  const isSet = (name: string): boolean => (environment[name] ?? '') !== ''
  const effective = (names: object): string[] => namesOf(names, true).filter(isSet)
  return {
    completing: effective(completing),
    changing: effective(changing),
    ignored: [...IGNORED, ...namesOf(all, false)].filter(isSet).sort(),
  }
}

const namesOf = (names: object, effect: boolean): string[] =>
  Object.entries(names).flatMap(([name, has]) => (has === effect ? [name] : []))
