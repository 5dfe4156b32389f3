import { type Static, Type } from 'typebox'
import { endpoint, noFields, ok, PATTERN_IN_WORDS } from '../endpoint.js'
import { kind, seconds, shared, storeErrors, text, writeErrors, written } from './fields.js'
import {
  ALERT_HISTORY_DAYS,
  ALERT_KINDS,
  DEFAULT_GROUP_MINUTES,
  DEFAULT_HOURLY_LIMIT,
  GROUP_MINUTES,
  MAX_ALERT_CHANNELS,
  MAX_EXAMPLES,
} from './kinds.js'

/** The wire of alerts: channels, rules and the history. Times are Unix seconds. */

/** Formats of notifications, chosen by each channel. */
export const ALERT_FORMATS = ['json', 'slack'] as const
/** The format of notifications. */
export type AlertFormat = (typeof ALERT_FORMATS)[number]

/** The outcome of the notification of an alert. */
export const ALERT_STATES = ['pending', 'sent', 'held_back', 'silenced', 'no_channel'] as const
/** The outcome of a notification. */
export type AlertState = (typeof ALERT_STATES)[number]

/** Whether an alert is about an event, or about the beginning or the end of a state. */
export const ALERT_STATUSES = ['event', 'firing', 'resolved'] as const
/** What an alert is about. */
export type AlertStatus = (typeof ALERT_STATUSES)[number]

/** Longest URL of a channel, characters. */
export const MAX_CHANNEL_URL_LENGTH = 2_048
/** Longest name of a channel, and longest reason of a silence, characters. */
export const MAX_ALERT_TEXT_LENGTH = 200
const MAX_PAGE_SIZE = 100

const kinds = Type.Array(kind('Name of a rule.'), {
  maxItems: ALERT_KINDS.length,
  description: 'Only alerts of these rules. Empty: all of them, also those that a newer Homeport adds.',
})
const format = Type.Enum([...ALERT_FORMATS], {
  description: '`json`: all facts; `slack`: a text that Slack and services compatible with it show.',
})
const hourlyLimit = Type.Integer({
  minimum: 1,
  maximum: 1_000,
  description: 'Notifications an hour. More are held back and counted in the next one.',
})
const enabled = Type.Boolean({
  description: 'Whether the channel gets notifications. false: alerts are only kept in the history.',
})
const groupMinutes = Type.Integer({
  minimum: GROUP_MINUTES.least,
  maximum: GROUP_MINUTES.most,
  description:
    'After a notification about a subject, further alerts about it are collected for this many minutes and sent as one notification.',
})
const sendResolved = Type.Boolean({
  description: 'Whether the channel is also notified when a state ends that it was notified of, such as a full disk.',
})

/** A channel: a URL to which the alerts of an account are sent. */
export const AlertChannelSchema = Type.Object({
  channel_id: text('Identifier of the channel.'),
  name: text('Name of the channel.'),
  url: text('Where notifications are sent. Read-only keys see the host only, because the rest may be a secret.'),
  format,
  kinds,
  hourly_limit: hourlyLimit,
  group_minutes: groupMinutes,
  send_resolved: sendResolved,
  enabled,
  held_back: Type.Integer({ description: 'Notifications held back since the last one that was sent.' }),
  creation_time: seconds('When it was created.'),
})
/** A channel as the API shows it. */
export type AlertChannel = Static<typeof AlertChannelSchema>

/** One occurrence of what an alert is about. */
export const AlertExampleSchema = Type.Object({
  at: seconds('When it happened.'),
  id: text('Id of the affected message, run, backup, database or file.'),
  text: text('What was found.'),
})

/** An alert of the history. */
export const AlertSchema = Type.Object({
  alert_id: text('Identifier of the alert.'),
  status: Type.Enum([...ALERT_STATUSES], {
    description:
      '`event`: something happened; `firing`: a state began, got worse or lasts; `resolved`: a state has ended.',
  }),
  episode_id: Type.Optional(
    text('The same for all alerts of a state from its beginning to its end; absent for events.'),
  ),
  kind: text('The rule.'),
  subject: text('The affected object; the rule says what kind of object it is.'),
  severity: Type.Enum(['warning', 'error']),
  title: text('What happened, one sentence.'),
  advice: text('What to do.'),
  count: Type.Integer({ description: 'How often it happened.' }),
  examples: Type.Array(AlertExampleSchema, { description: `At most ${MAX_EXAMPLES} occurrences.` }),
  first_at: seconds('When it happened first.'),
  last_at: seconds('When it happened last.'),
  state: Type.Enum([...ALERT_STATES], {
    description:
      '`pending`: collects occurrences until its notification is due; `sent`; `held_back`: every channel has reached its hourly limit; `silenced`: a silence matched; `no_channel`: no channel is subscribed to this rule, or none was notified of the state that has ended.',
  }),
  notified_at: Type.Optional(seconds('When the state was decided; absent while pending.')),
  message_ids: Type.Array(Type.String(), { description: 'The messages of the queue that carry the notification.' }),
})
/** An alert as the API shows it. */
export type Alert = Static<typeof AlertSchema>

/** A rule with the changes of the account. */
export const AlertRuleSchema = Type.Object({
  kind: text('Name of the rule.'),
  summary: text('What it alerts of.'),
  subject: text('The kind of object that its alerts are about.'),
  scope: Type.Enum(['account', 'server']),
  enabled: Type.Boolean({ description: 'Whether it alerts.' }),
  threshold: Type.Optional(
    Type.Integer({ description: 'The threshold for an alert, in `unit`; absent for rules without one.' }),
  ),
  default_threshold: Type.Optional(Type.Integer({ description: 'The threshold of an account that sets none.' })),
  unit: Type.Optional(text('Unit of the threshold.')),
  meaning: Type.Optional(text('What the threshold means: alert when ...')),
})
/** A rule as the API shows it. */
export type AlertRule = Static<typeof AlertRuleSchema>

const channelParams = Type.Object({ id: text('`channel_id` of the channel.') })

/** Lists the channels of an account. */
export const listAlertChannels = endpoint({
  ...shared,
  id: 'listAlertChannels',
  method: 'GET',
  path: '/v2/alerts/channels',
  access: 'read',
  summary: 'List alert channels',
  description: 'The channels to which alerts of this account or team are sent, oldest first.',
  body: { kind: 'none' },
  success: { status: 200, description: 'The channels.', body: Type.Array(AlertChannelSchema) },
  errors: storeErrors,
})

const channelFields = {
  name: written('Name of the channel.', MAX_ALERT_TEXT_LENGTH),
  url: Type.String({
    minLength: 1,
    maxLength: MAX_CHANNEL_URL_LENGTH,
    description: 'An http or https URL. The same rules apply as for destinations of messages.',
    examples: ['https://example.com/hooks/alerts'],
  }),
  format,
  kinds,
  hourly_limit: hourlyLimit,
  group_minutes: groupMinutes,
  send_resolved: sendResolved,
  enabled,
}
// Unknown fields are refused: a misspelt `kinds` must not subscribe to everything.
const CreateChannelSchema = Type.Object(
  {
    name: channelFields.name,
    url: channelFields.url,
    format: Type.Optional(channelFields.format),
    kinds: Type.Optional(channelFields.kinds),
    hourly_limit: Type.Optional(channelFields.hourly_limit),
    group_minutes: Type.Optional(channelFields.group_minutes),
    send_resolved: Type.Optional(channelFields.send_resolved),
    enabled: Type.Optional(channelFields.enabled),
  },
  { additionalProperties: false },
)
/** The body that creates a channel. */
export type CreateChannelBody = Static<typeof CreateChannelSchema>

/** Creates a channel. */
export const createAlertChannel = endpoint({
  ...shared,
  id: 'createAlertChannel',
  method: 'POST',
  path: '/v2/alerts/channels',
  access: 'write',
  summary: 'Create an alert channel',
  description: `Notifications go to its URL as messages of the account's queue: signed with its signing keys and retried. Defaults: format \`json\`, all rules, ${DEFAULT_HOURLY_LIMIT} notifications an hour, ${DEFAULT_GROUP_MINUTES} minutes of grouping, notified when states end, enabled. An account or team may have ${MAX_ALERT_CHANNELS} channels.`,
  body: { kind: 'json', schema: CreateChannelSchema },
  success: { status: 200, description: 'The new channel.', body: AlertChannelSchema },
  errors: ['alert_channel_limit', 'destination_forbidden', ...writeErrors],
})

const ChangeChannelSchema = Type.Partial(Type.Object(channelFields), { additionalProperties: false, minProperties: 1 })
/** The body that changes a channel. */
export type ChangeChannelBody = Static<typeof ChangeChannelSchema>

/** Changes a channel. */
export const changeAlertChannel = endpoint({
  ...shared,
  id: 'changeAlertChannel',
  method: 'PATCH',
  path: '/v2/alerts/channels/{id}',
  access: 'write',
  summary: 'Change an alert channel',
  description: 'Changes the fields that are sent and leaves the others.',
  params: channelParams,
  body: { kind: 'json', schema: ChangeChannelSchema },
  success: { status: 200, description: 'The changed channel.', body: AlertChannelSchema },
  errors: ['alert_channel_not_found', 'destination_forbidden', ...writeErrors],
})

/** Deletes a channel. */
export const deleteAlertChannel = endpoint({
  ...shared,
  id: 'deleteAlertChannel',
  method: 'DELETE',
  path: '/v2/alerts/channels/{id}',
  access: 'write',
  summary: 'Delete an alert channel',
  description: 'Nothing more is published to it. Notifications that were published before are still delivered.',
  params: channelParams,
  body: noFields,
  success: ok,
  errors: ['alert_channel_not_found', ...writeErrors],
})

/** Sends a test to a channel. */
export const testAlertChannel = endpoint({
  ...shared,
  id: 'testAlertChannel',
  method: 'POST',
  path: '/v2/alerts/channels/{id}/test',
  access: 'write',
  summary: 'Send a test notification',
  description:
    'Publishes a notification with `"test": true` to the channel at once, regardless of its rules, silences and limit. The history does not show it.',
  params: channelParams,
  body: noFields,
  success: {
    status: 200,
    description: 'The message of the queue that carries the notification.',
    body: Type.Object({ message_id: text('Its id; `homeport queue messages` and the console show its delivery.') }),
  },
  errors: ['alert_channel_not_found', 'destination_forbidden', ...writeErrors],
})

/** Reads the history of alerts. */
export const listAlertHistory = endpoint({
  ...shared,
  id: 'listAlertHistory',
  method: 'GET',
  path: '/v2/alerts/history',
  access: 'read',
  cost: 'heavy',
  summary: 'Read the history of alerts',
  description: `Alerts of the last ${ALERT_HISTORY_DAYS} days, newest first. Occurrences about one subject within the grouping time are one alert; if channels have different grouping times, the shortest counts.`,
  query: Type.Object({
    cursor: Type.Optional(
      Type.String({
        pattern: '^\\d{1,15}$',
        [PATTERN_IN_WORDS]: 'must be the cursor of an earlier page',
        description: 'The `cursor` of the previous page.',
      }),
    ),
    count: Type.Optional(
      Type.Integer({ minimum: 1, maximum: MAX_PAGE_SIZE, description: 'Most alerts. Default: 50.' }),
    ),
    kind: Type.Optional(kind('Only alerts of this rule.')),
  }),
  body: { kind: 'none' },
  success: {
    status: 200,
    description: 'A page of alerts.',
    body: Type.Object({
      alerts: Type.Array(AlertSchema),
      cursor: Type.Optional(text('The `cursor` for the next page; absent on the last page.')),
    }),
  },
  errors: storeErrors,
})

/** Lists the rules. */
export const listAlertRules = endpoint({
  ...shared,
  id: 'listAlertRules',
  method: 'GET',
  path: '/v2/alerts/rules',
  access: 'read',
  summary: 'List alert rules',
  description: 'Every rule with its threshold. Rules about the server are listed only for its first account.',
  body: { kind: 'none' },
  success: { status: 200, description: 'The rules.', body: Type.Array(AlertRuleSchema) },
  errors: storeErrors,
})

const ChangeRuleSchema = Type.Object(
  {
    enabled: Type.Optional(Type.Boolean({ description: 'Whether it alerts.' })),
    threshold: Type.Optional(
      Type.Union([Type.Integer({ minimum: 1 }), Type.Null()], {
        description: 'The threshold, in the unit of the rule; null for the default. Each rule limits its threshold.',
      }),
    ),
  },
  { additionalProperties: false, minProperties: 1 },
)
/** The body that changes a rule. */
export type ChangeRuleBody = Static<typeof ChangeRuleSchema>

/** Changes a rule. */
export const changeAlertRule = endpoint({
  ...shared,
  id: 'changeAlertRule',
  method: 'PATCH',
  path: '/v2/alerts/rules/{kind}',
  access: 'write',
  summary: 'Change an alert rule',
  description: 'Turns a rule on or off, or sets its threshold. Fields that are not sent stay unchanged.',
  params: Type.Object({ kind: text('Name of the rule.') }),
  body: { kind: 'json', schema: ChangeRuleSchema },
  success: { status: 200, description: 'The changed rule.', body: AlertRuleSchema },
  errors: ['alert_rule_not_found', ...writeErrors],
})
