import { define } from './entry.js'

/** Errors of alerts. */
export const alertsErrors = {
  alert_channel_not_found: define<{ channelId: string }>({
    status: 404,
    text: ({ channelId }) =>
      `alert channel not found: this account has none with the id "${channelId}". GET /v2/alerts/channels lists all of them.`,
  }),
  alert_channel_limit: define<{ limit: number }>({
    status: 409,
    text: ({ limit }) => `This account already has ${limit} alert channels, which is the limit. Delete one first.`,
  }),
  alert_silence_not_found: define<{ silenceId: string }>({
    status: 404,
    text: ({ silenceId }) =>
      `silence not found: this account has none with the id "${silenceId}". GET /v2/alerts/silences lists all of them.`,
  }),
  alert_silence_limit: define<{ limit: number }>({
    status: 409,
    text: ({ limit }) => `This account already has ${limit} silences, which is the limit. Delete one first.`,
  }),
  alert_rule_not_found: define<{ kind: string }>({
    status: 404,
    text: ({ kind }) =>
      `alert rule not found: this account has no rule "${kind}". GET /v2/alerts/rules lists all of them. Only the first account has the rules about the server.`,
  }),
} as const
