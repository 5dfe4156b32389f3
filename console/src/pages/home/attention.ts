/** The items that need attention, derived from the overview: worst first, each with advice and a link. */
import { MAX_COUNTED, type Overview } from '../../../../src/contract/console/console.js'
import type { Tone } from '../../components/status.js'
import { bytes, capped, counted, duration, percent } from '../../lib/format.js'

/** An item that needs attention. */
export interface Concern {
  readonly key: string
  readonly tone: Extract<Tone, 'bad' | 'warn'>
  readonly title: string
  readonly advice: string
  /** The page to go to, if one helps. */
  readonly to?: string
}

const FREE_SHARE_LOW = 0.1
const FREE_SHARE_BAD = 0.03
const CERTIFICATE_SOON_MS = 14 * 86_400_000

/** Everything that needs attention. */
export function concernsOf(overview: Overview, nowMs: number): Concern[] {
  const concerns = [...engine(overview), ...disk(overview), ...databases(overview), ...failures(overview)]
  const all = [...problems(overview), ...concerns, ...certificate(overview, nowMs)]
  return all.sort((one, other) => Number(one.tone === 'warn') - Number(other.tone === 'warn'))
}

const problems = ({ problems }: Overview): Concern[] =>
  problems.map(({ kind, subject, severity, title, advice, node }) => ({
    key: node === undefined ? `${kind} ${subject}` : `${kind} ${subject} ${node}`,
    tone: severity === 'error' ? 'bad' : 'warn',
    title: node === undefined ? title : `${title} (node ${node})`,
    advice,
  }))

const engine = ({ engine: { problems } }: Overview): Concern[] =>
  problems.map((problem) => ({
    key: problem,
    tone: 'bad',
    title: 'The engine has a problem',
    advice: problem,
  }))

function disk({ disk: { free_bytes, total_bytes } }: Overview): Concern[] {
  const share = total_bytes === 0 ? 1 : free_bytes / total_bytes
  if (share > FREE_SHARE_LOW) return []
  return [
    {
      key: 'disk',
      tone: share > FREE_SHARE_BAD ? 'warn' : 'bad',
      title: `The disk has ${bytes(free_bytes)} left (${percent(share)})`,
      advice: 'When it is full, writes are refused. Free disk space, or move the data directory.',
    },
  ]
}

function databases({ databases: { suspended } }: Overview): Concern[] {
  if (suspended === 0) return []
  return [
    {
      key: 'suspended',
      tone: 'bad',
      title: `${counted(suspended, 'database is', 'databases are')} suspended`,
      advice:
        'Commands are refused, the data is kept. Raise the budget or change the plan, or resume what its owner has suspended.',
      to: '/databases?state=suspended',
    },
  ]
}

function failures({ messages, runs }: Overview): Concern[] {
  const dead: Concern[] = []
  if (messages.dead > 0) {
    dead.push({
      key: 'dead-messages',
      tone: 'warn',
      title: `${capped(messages.dead, MAX_COUNTED)} ${messages.dead === 1 ? 'message' : 'messages'} could not be delivered`,
      advice: 'Fix the destination, then send dead letters again, or delete them.',
      to: '/dead-letters',
    })
  }
  if (runs.dead > 0) {
    dead.push({
      key: 'dead-runs',
      tone: 'warn',
      title: `${capped(runs.dead, MAX_COUNTED)} workflow ${runs.dead === 1 ? 'run has' : 'runs have'} failed`,
      advice: 'Fix the endpoint, then resume or restart failed runs.',
      to: '/runs/dead-letters',
    })
  }
  return dead
}

function certificate({ tls: { certificate_expires_at } }: Overview, nowMs: number): Concern[] {
  // A certificate that cannot be used is reported as a problem.
  if (certificate_expires_at === undefined) return []
  const leftMs = certificate_expires_at * 1000 - nowMs
  if (leftMs > CERTIFICATE_SOON_MS) return []
  return [
    {
      key: 'certificate',
      tone: leftMs > 0 ? 'warn' : 'bad',
      title:
        leftMs > 0
          ? `The certificate of the Redis ports expires in ${duration(leftMs)}`
          : 'The certificate of the Redis ports has expired',
      advice: 'Restart the server: it renews its own certificate at start.',
    },
  ]
}
