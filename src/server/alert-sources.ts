/** What the alerts read besides the store: the databases, the disk and the certificate. */
import { X509Certificate } from 'node:crypto'
import { statfs } from 'node:fs/promises'
import type { AlertSources, WatchedDatabase } from '../alerts/index.js'
import type { Databases } from '../databases/index.js'
import type { Fleet } from '../fleet/index.js'
import type { ServerCertificate } from '../gateway/index.js'

/** Collaborators of `alertSources`. */
export interface AlertSourcesDeps {
  readonly dataDir: string
  readonly databases: Pick<Databases, 'usage'>
  readonly fleet: Pick<Fleet, 'observe'>
  /** Undefined: databases with TLS are not served. */
  readonly tls: ServerCertificate | undefined
}

/** Failures in a row that are worth an alert. After a single failure, the fleet restarts the engine without an alert. */
const WORTH_AN_ALERT = 2
/** Exits in 10 minutes that are worth an alert, even if the engine served in between. */
const TOO_MANY_ENDS = 3
const DOLLAR_NANO = 1_000_000_000

/** The sources of a whole server. */
export function alertSources({ dataDir, databases, fleet, tls }: AlertSourcesDeps): AlertSources {
  const restartsOf = (databaseId: string): string | undefined => {
    const members = fleet.observe(databaseId)
    const failing = members.find(
      // The failure count of an engine that runs again may be outdated.
      ({ failures, state }) => failures >= WORTH_AN_ALERT && (state === 'backing-off' || state === 'starting'),
    )
    const why = ({ reason }: { readonly reason?: string }): string => reason ?? 'no reason is known'
    if (failing) return `${failing.failures} times in a row (${why(failing)})`
    const often = members.find(({ recentEnds }) => recentEnds >= TOO_MANY_ENDS)
    return often && `${often.recentEnds} times in the last 10 minutes (${why(often)})`
  }
  return {
    databases: () => {
      const { ledgers, nowMs } = databases.usage
      return ledgers.map((ledger): WatchedDatabase => {
        const { database_id: databaseId, account_id: accountId, name, budget } = ledger.row
        const restarts = restartsOf(databaseId)
        const spent = ledger.monthCostNano(nowMs) / DOLLAR_NANO
        return { accountId, databaseId, name, budget, spent, ...(restarts !== undefined && { restarts }) }
      })
    },
    disk: async () => {
      const { bavail, blocks, bsize } = await statfs(dataDir)
      return { freeBytes: bavail * bsize, totalBytes: blocks * bsize }
    },
    certificateExpiresAt: () => tls && Date.parse(new X509Certificate(tls.current.certificate).validTo),
  }
}
