import { HomeportError } from '../../contract/errors/errors.js'
import {
  type CallbackConfig,
  configOf,
  DEFAULT_RETRIES,
  forwardedHeaders,
  type HeaderMap,
  type KeyRule,
  labelColumn,
  type MessageConfig,
  type PublishItem,
  parseDestination,
  readSettings,
  refuseInvalidOfCallbacks,
  type SettingLimits,
  type Settings,
  storedConfig,
} from '../../queue/index.js'
import type { Role } from '../runs/run-state.js'
import type { DeliveryColumns, ElementMeta, RunOrigin } from '../transactions/runs-rows.js'
import { announces, type ItemHeaders, passesToEndpoint } from './protocol.js'

/** Fields of this module in the configuration of its messages. */
export interface RunMark {
  readonly role: Role
  /** The SDK can fetch a list that is too large to be sent. */
  readonly lazy?: true
}

/** Key of `RunMark` in `MessageConfig`. */
const MARK = 'x-workflow'

/** Reads the mark of a message of this module. */
export function markOf(config: MessageConfig): RunMark {
  // Only this module makes messages of its kind, and it always sets a mark.
  return config[MARK] as RunMark
}

/** Serializes the configuration of a message of a run. */
export function markedConfig(config: MessageConfig, mark: RunMark): string {
  return JSON.stringify({ ...config, [MARK]: mark })
}

/** Settings of a trigger, stored with the first element; or of a step that repeats them (reference workflow 4.16). */
export interface RunMeta extends ElementMeta {
  readonly delivery: DeliveryColumns
  readonly failureCallback?: CallbackConfig
  /** The failure callback carries the failing list: this SDK cannot get the payload otherwise (4.11, 4.16). */
  readonly reportsList?: true
  /** The original run, for a restarted run. */
  readonly origin?: RunOrigin
  /** The debounce or singleton key of the trigger. */
  readonly rule?: KeyRule
}

/** A parsed trigger or step. */
export interface RunItem {
  readonly settings: Settings
  readonly meta: RunMeta
}

/** Context of parsing an item. */
export interface Reading {
  readonly now: number
  readonly ip: string
  readonly limits: SettingLimits
}

/**
 * Parses the settings for the deliveries of a run: from its trigger, or from a step whose SDK repeats them.
 * @throws HomeportError if a setting of the item is invalid.
 */
export function readRunItem(item: PublishItem, reading: Reading): RunItem {
  const destination = parseDestination(item.headers['upstash-workflow-url'] ?? item.destination)
  const settings = readSettings(item.headers, reading.now, reading.limits)
  const { callback: _, failureCallback, rule, ...own } = settings
  if (failureCallback) refuseInvalidOfCallbacks(item.headers)
  const lazy = announces(item.headers, 'LazyFetch') && announces(item.headers, 'WF_TriggerOnConfig')
  const delivery: DeliveryColumns = {
    url: destination.url,
    method: 'POST',
    headers: JSON.stringify(endpointHeaders(forwardedHeaders(item.headers, settings.forwardAll), item.headers)),
    config: markedConfig(configOf({ ...own }), { role: 'step', ...(lazy && { lazy }) }),
    max_retries: settings.retries ?? DEFAULT_RETRIES,
    labels: labelColumn(settings.labels),
    flow_key: settings.flowKey ?? null,
    caller_ip: reading.ip,
    host: destination.host,
    path: destination.path,
  }
  const failure = failureCallback && { failureCallback, ...sourceOf(item.headers) }
  return { settings, meta: { delivery, ...failure, ...(rule && { rule }) } }
}

/**
 * Debounce and singleton keys belong to messages and triggers, not to what a run requests.
 * @throws HomeportError `invalid_request`.
 */
export function refuseRule({ rule }: Settings): void {
  if (!rule) return
  const name = rule.kind === 'debounce' ? 'Homeport-Debounce' : 'Homeport-Singleton'
  const problem = `${name} is a setting of messages and triggers. Leave it out of steps, calls and invocations.`
  throw new HomeportError('invalid_request', { problem })
}

/** The delivery that starts a run with a debounce key: a trigger may replace the run until then. */
export function debouncedDelivery(delivery: DeliveryColumns, rule: KeyRule): DeliveryColumns {
  const config = storedConfig(delivery.config)
  return { ...delivery, config: markedConfig({ ...config, rule }, markOf(config)) }
}

/** Which data the failure callback must carry for this SDK. */
export function sourceOf(headers: ItemHeaders): Pick<RunMeta, 'reportsList'> {
  return announces(headers, 'InitialBody') ? {} : { reportsList: true }
}

/** The same delivery in another role. */
export function inRole(delivery: DeliveryColumns, role: Role): DeliveryColumns {
  const config = storedConfig(delivery.config)
  return { ...delivery, config: markedConfig(config, { ...markOf(config), role }) }
}

/** The headers of the user, without those that the server sets. */
function endpointHeaders(forwarded: HeaderMap, item: Readonly<Record<string, string>>): HeaderMap {
  const kept = Object.entries(forwarded).filter(([name]) => passesToEndpoint(name.toLowerCase()))
  return { 'Content-Type': [item['content-type'] ?? 'application/json'], ...Object.fromEntries(kept) }
}

const MAX_RUN_ID_LENGTH = 512
const UNSENDABLE = /[\s/\x00-\x1f\x7f]|[^\x00-\xff]/
/** SDKs put the id into paths without encoding it. With these characters the path would name no run, or another run. */
const NOT_IN_PATHS = /[?#%\\]|^\.\.?$/

/**
 * Reads the run id of an item.
 * @throws HomeportError `invalid_request` for an id that a header of a delivery cannot hold.
 */
export function runIdOf(item: PublishItem): string {
  return checked(item, (id) => !UNSENDABLE.test(id))
}

/**
 * Reads the id of a run that an item is to start.
 * @throws HomeportError `invalid_request` also for an id that an SDK could not use.
 */
export function newRunIdOf(item: PublishItem): string {
  return checked(item, (id) => !UNSENDABLE.test(id) && !NOT_IN_PATHS.test(id))
}

function checked({ headers }: PublishItem, isUsable: (id: string) => boolean): string {
  const id = headers['upstash-workflow-runid'] ?? ''
  if (id !== '' && id.length <= MAX_RUN_ID_LENGTH && isUsable(id)) return id
  throw new HomeportError('invalid_request', {
    problem: `Upstash-Workflow-RunId is ${JSON.stringify(id.slice(0, 80))}; send 1 to ${MAX_RUN_ID_LENGTH} characters of Latin 1 without spaces, control characters and any of / \\ ? # %, such as "wfr_order-17".`,
  })
}
