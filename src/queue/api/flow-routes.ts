import { decodedOrSame } from '../../base/index.js'
import { HomeportError } from '../../contract/errors/errors.js'
import { changeFlowKey, getFlowKey, getGlobalParallelism, listFlowKeys } from '../../contract/queue/flow.js'
import { type Route, route } from '../../http/index.js'
import { UNUSED } from '../dispatcher/flow-key.js'
import { refuseOtherName } from '../publish/scope.js'
import { refuseSetting } from '../publish/setting-values.js'
import { MAX_PERIOD_S } from '../publish/settings.js'
import * as flowDue from '../transactions/flow-due.js'
import type { FlowKeyChange, FlowKeyRow } from '../transactions/flow-keys.js'
import * as flowKeys from '../transactions/flow-keys.js'
import type { ApiDeps } from './deps.js'
import { longList, PAGE } from './long-list.js'

/** An action on a key. */
interface Action {
  readonly key: string
  readonly verb: string
  readonly query: URLSearchParams
}

const ACTION = /^([^?]+)\/(pause|resume|pin|unpin|resetRate|reset)(?:\?(.*))?$/

function actionOf(rest: string): Action {
  const [, key, verb, query = ''] = ACTION.exec(rest) ?? []
  if (key === undefined || verb === undefined) {
    throw new HomeportError('invalid_request', {
      problem: `"${rest.slice(0, 80)}" is not a flow-control key followed by /pause, /resume, /pin, /unpin or /resetRate.`,
    })
  }
  return { key: decodedOrSame(key), verb, query: new URLSearchParams(query) }
}

function amount(query: URLSearchParams, name: string, most = Number.MAX_SAFE_INTEGER): number | undefined {
  const text = query.get(name)
  if (text === null) return undefined
  const value = /^\d{1,9}$/.test(text) ? Number(text) : 0
  return value > 0 && value <= most ? value : refuseSetting(name, text, 'send a whole number above 0')
}

function pinned(query: URLSearchParams): FlowKeyChange {
  const parallelism = amount(query, 'parallelism')
  const rate = amount(query, 'rate')
  const period_s = amount(query, 'period', MAX_PERIOD_S)
  if (parallelism === undefined && rate === undefined) {
    throw new HomeportError('invalid_request', {
      problem:
        'The request names no limit to pin; send parallelism, rate or both in the query, such as ?parallelism=3.',
    })
  }
  return {
    ...(parallelism !== undefined && { parallelism, pinned_parallelism: 1 as const }),
    ...(rate !== undefined && { rate, period_s: period_s ?? 1, pinned_rate: 1 as const }),
  }
}

function changeOf({ verb, query }: Action): { change: FlowKeyChange; create: boolean } {
  switch (verb) {
    case 'pause':
      return { change: { paused: 1 }, create: true }
    case 'resume':
      return { change: { paused: 0 }, create: false }
    case 'pin':
      return { change: pinned(query), create: true }
    case 'unpin': {
      const parallelism = query.get('parallelism') === 'true' && { pinned_parallelism: 0 as const }
      const rate = query.get('rate') === 'true' && { pinned_rate: 0 as const }
      return { change: { ...parallelism, ...rate }, create: false }
    }
    default:
      return { change: {}, create: false }
  }
}

function view(row: FlowKeyRow, due: number, use = UNUSED) {
  return {
    flowControlKey: row.flow_key,
    waitListSize: Math.max(0, due - use.open),
    parallelismMax: row.parallelism ?? 0,
    parallelismCount: use.open,
    rateMax: row.rate ?? 0,
    rateCount: use.begun,
    ratePeriod: row.period_s,
    ratePeriodStart: Math.floor(use.periodStart / 1_000),
    isPaused: row.paused === 1,
    isPinnedParallelism: row.pinned_parallelism === 1,
    isPinnedRate: row.pinned_rate === 1,
  }
}

/** Most due messages that one read counts. */
const COUNTED_AT_ONCE = 20_000

async function dueOf({ store, clock }: ApiDeps, accountId: string, key: string): Promise<number> {
  let due = 0
  for (let after: flowDue.DueCount['next'] = flowDue.FIRST_DUE; after; ) {
    const of = { accountId, key, now: clock.now() }
    const some: flowDue.DueCount = await store.run(flowDue.count, { ...of, after, limit: COUNTED_AT_ONCE })
    due += some.count
    after = some.next
  }
  return due
}

/** The keys of an account, in pages. */
async function* allKeys(deps: ApiDeps, accountId: string, search: string) {
  const { store, clock, nodes } = deps
  const usesOf = await nodes.flowUsesOf(accountId)
  for (let after: string | undefined = ''; after !== undefined; ) {
    const args = { accountId, search, after, limit: PAGE.items, now: clock.now() }
    const page: readonly flowKeys.KeyWithDue[] = await store.run(flowKeys.list, args)
    const uses = usesOf(page.map(({ row }) => row.flow_key))
    const views: ReturnType<typeof view>[] = []
    for (const { row, due } of page) {
      const all = due < flowKeys.MAX_DUE ? due : await dueOf(deps, accountId, row.flow_key)
      views.push(view(row, all, uses.get(row.flow_key)))
    }
    yield views
    after = page.length === PAGE.items ? page.at(-1)?.row.flow_key : undefined
  }
}

async function act(deps: ApiDeps, accountId: string, action: Action): Promise<void> {
  const { store, clock, flow, nodes } = deps
  const { key } = action
  const args = { accountId, key, ...changeOf(action), at: clock.now() }
  const row = await store.run(flowKeys.modify, args)
  if (!row) throw new HomeportError('flow_key_not_found', { key: key.slice(0, 80) })
  // The change is committed, so it applies here even if the following read of the limits fails.
  flow.set(row)
  await nodes.flowChanged({ keys: [[accountId, key]], isReset: action.verb === 'resetRate' || action.verb === 'reset' })
}

/** Flow control. */
export function flowRoutes(deps: ApiDeps): Route[] {
  return [
    route(listFlowKeys, ({ caller, query }) =>
      longList(deps.clock, allKeys(deps, caller.accountId, query.search ?? '')),
    ),
    route(getFlowKey, async ({ caller, params }) => {
      const key = decodedOrSame(params.key.split('?', 1)[0] ?? '')
      refuseOtherName(caller.scope, 'flow_control', key)
      const { accountId } = caller
      const row = await deps.store.run(flowKeys.get, { accountId, key })
      if (!row) throw new HomeportError('flow_key_not_found', { key: key.slice(0, 80) })
      const due = await dueOf(deps, accountId, key)
      const uses = await deps.nodes.flowUses(accountId, key)
      return view(row, due, uses.get(key))
    }),
    route(changeFlowKey, async ({ caller, params }) => {
      await act(deps, caller.accountId, actionOf(params.action))
      return {}
    }),
    route(getGlobalParallelism, async () => {
      const { sending, most } = await deps.nodes.parallelism()
      return { parallelismMax: most, parallelismCount: sending }
    }),
  ]
}
