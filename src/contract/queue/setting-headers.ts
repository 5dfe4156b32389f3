import Type, { type TObject, type TSchema } from 'typebox'
import { MAX_ITEM_HEADER_BYTES, MAX_ITEM_HEADERS } from '../request-limits.js'
import { whole } from '../words/figures.js'
import { GREATEST_PRIORITY } from './priority.js'

/**
 * The headers of a publish request, for the documentation. `queue/publish/settings.ts` parses them, because its rules go
 * beyond a schema. The lists lack `Upstash-Forward-<Name>` and the further settings of callbacks, because OpenAPI cannot
 * describe a header by its prefix.
 */

const text = (description: string) => Type.Optional(Type.String({ description }))
const flag = (description: string) => Type.Optional(Type.Boolean({ description }))

const METHOD = Type.Optional(
  Type.Enum(['GET', 'POST', 'PUT', 'PATCH', 'DELETE'], { description: 'HTTP method of the delivery. Default POST.' }),
)
const RETRIES = Type.Optional(
  Type.Integer({ minimum: 0, maximum: 1_000, description: 'Most retries after the first attempt. Default 3.' }),
)
const RETRY_DELAY = text(
  'Expression for the wait before a retry, milliseconds: numbers, `+ - * /`, parentheses, `retried` and functions such as `pow` and `min`. Example: `1000 * (1 + retried)`. Default: exponential backoff.',
)
const FLOW_KEY = text('Name of a flow-control key. Messages with the same key share its limits.')
const FLOW_VALUE = text('Limits of the flow-control key. Example: `parallelism=2, rate=5, period=60s`.')

/** Settings that a message, a schedule and a run share. */
const SHARED = {
  'Upstash-Delay': text('Wait before the first attempt: `30s`, `1d10h30m` or seconds, at most 366 days.'),
  'Upstash-Retries': RETRIES,
  'Upstash-Retry-Delay': RETRY_DELAY,
  'Upstash-Label': text('Up to 32 labels of letters, digits, `-`, `_` and `.`, separated by commas.'),
  'Upstash-Flow-Control-Key': FLOW_KEY,
  'Upstash-Flow-Control-Value': FLOW_VALUE,
  'Upstash-Failure-Callback': text('URL that is called once, when delivery has failed for good.'),
}

const NOT_BEFORE = {
  'Upstash-Not-Before': Type.Optional(
    Type.Integer({
      minimum: 0,
      description: 'When the first attempt is due, Unix seconds. Takes precedence over the delay.',
    }),
  ),
}

/** Settings that only Homeport has. */
const RULES = {
  'Homeport-Debounce': text(
    'Debounce key, at most 512 characters. A new message or run replaces an older one with the same key that has not been sent or started yet, and the delay starts again.',
  ),
  'Homeport-Debounce-Delay': text(
    'How long a debounced message or run waits for a newer one: `30s` or seconds, at most 366 days. Required with a debounce key.',
  ),
  'Homeport-Debounce-Max-Delay': text(
    'The longest wait since the first message or trigger that was replaced. Default: no limit.',
  ),
  'Homeport-Singleton': text(
    'Singleton key, at most 512 characters. At any time, at most one message with the key is pending and at most one run with the key is active.',
  ),
  'Homeport-Singleton-Mode': Type.Optional(
    Type.Enum(['skip', 'cancel'], {
      description:
        'What happens while an older message or run with the singleton key has not ended: `skip` creates no new one, `cancel` cancels the older one. Default skip.',
    }),
  ),
  'Homeport-Priority': Type.Optional(
    Type.Integer({
      minimum: -GREATEST_PRIORITY,
      maximum: GREATEST_PRIORITY,
      description:
        'Seconds by which a message, or each step of a run, counts as due earlier while it waits with others of the account; negative: later. Not for messages of a queue. Default 0.',
    }),
  ),
}

/** The headers of settings that only Homeport has. */
export const OWN_SETTING_HEADERS: readonly string[] = Object.keys(RULES)

/** Settings of messages and schedules. */
const MESSAGE = {
  ...SHARED,
  ...RULES,
  'Upstash-Method': METHOD,
  'Upstash-Timeout': text("Timeout of an attempt: `30s` or seconds, at most the server's `deliveryTimeoutMs`."),
  'Upstash-Header-Forward': flag(
    'true: forward all other headers of this request to the destination, too. Default false.',
  ),
  'Upstash-Redact-Fields': text(
    'Hides parts of the message in logs: `body`, `header` or `header[Name]`, separated by commas.',
  ),
  'Upstash-Callback': text('URL that is called after each attempt.'),
  ...ofCallback('Upstash-Callback', 'the callback'),
  ...ofCallback('Upstash-Failure-Callback', 'the failure callback'),
}

function ofCallback(prefix: string, what: string): Record<string, TSchema> {
  const settings = { Method: METHOD, Retries: RETRIES, 'Retry-Delay': RETRY_DELAY, Timeout: text('') }
  return Object.fromEntries(
    Object.entries(settings).map(([name, schema]) => [
      `${prefix}-${name}`,
      Type.Optional({ ...schema, description: `\`Upstash-${name}\` of ${what}.` }),
    ]),
  )
}

/** Headers of publishing a message. */
export const PUBLISH_HEADERS: TObject = Type.Object({
  ...MESSAGE,
  ...NOT_BEFORE,
  'Upstash-Deduplication-Id': text(
    'Messages with the same id within 10 minutes count as one message. At most 512 characters.',
  ),
  'Upstash-Content-Based-Deduplication': flag(
    'true: messages with the same destination, method, body and forwarded headers within 10 minutes count as one message. Default false.',
  ),
})

/** Headers of creating a schedule. */
export const SCHEDULE_HEADERS: TObject = Type.Object({
  'Upstash-Cron': Type.String({
    description:
      'When the schedule fires: five fields in UTC, or in another time zone after `CRON_TZ=<zone> `. Example: `CRON_TZ=Europe/Berlin 0 9 * * 1-5`.',
  }),
  'Upstash-Schedule-Id': text(
    'Id of the schedule. A schedule with this id is replaced. Absent: the server creates an id.',
  ),
  'Upstash-Queue-Name': text('Queue of the messages.'),
  ...MESSAGE,
})

/** Headers of triggering a run. */
export const TRIGGER_HEADERS: TObject = Type.Object({
  'Upstash-Workflow-RunId': text(
    'Id of the run: 1 to 512 characters of Latin 1 without spaces, control characters, `/`, `\\`, `?`, `#` and `%`. Absent: the server creates an id.',
  ),
  ...SHARED,
  ...RULES,
  ...NOT_BEFORE,
})

/** The member `headers` of an item of a batch: settings that are headers in a single request. */
export const itemHeaders = (description: string) =>
  Type.Optional(
    Type.Record(Type.String(), Type.String(), {
      maxProperties: MAX_ITEM_HEADERS,
      description: `${description} At most ${MAX_ITEM_HEADERS} fields and ${whole(MAX_ITEM_HEADER_BYTES)} bytes.`,
    }),
  )
