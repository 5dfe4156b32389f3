import { Group, Paper, Progress, Stack, Text } from '@mantine/core'
import type { ReactNode } from 'react'
import { TextLink } from './link.js'

/** One important number with its label. */
export function Figure({
  label,
  value,
  note,
  to,
}: {
  label: string
  value: ReactNode
  note?: ReactNode
  /** The page that lists the counted items. */
  to?: string
}) {
  return (
    <Paper withBorder p="md" bg="var(--hp-surface)" style={{ borderColor: 'var(--hp-line)' }}>
      {to === undefined ? (
        <Text size="sm" c="dimmed">
          {label}
        </Text>
      ) : (
        <TextLink to={to}>{label}</TextLink>
      )}
      <Text
        component="div"
        fz={24}
        fw={650}
        lh={1.3}
        style={{ fontVariantNumeric: 'tabular-nums', overflowWrap: 'break-word' }}
      >
        {value}
      </Text>
      {note === undefined ? null : (
        <Text size="xs" c="dimmed" component="div">
          {note}
        </Text>
      )}
    </Paper>
  )
}

/** How much of a limit is used; `used` is `undefined` until it is known. */
export function LimitBar({
  label,
  used,
  allowed,
  show,
  note,
}: {
  label: string
  used: number | undefined
  allowed: number
  show: (value: number) => string
  note?: string
}) {
  const share = used === undefined ? 0 : Math.min(used / allowed, 1)
  const text = used === undefined ? `limit ${show(allowed)}` : `${show(used)} of ${show(allowed)}`
  return (
    <Stack gap={4}>
      <Group justify="space-between" gap="xs" wrap="nowrap">
        <Text size="sm">{label}</Text>
        <Text size="sm" c="dimmed" ta="right">
          {text}
        </Text>
      </Group>
      <Progress
        value={share * 100}
        color={share > 0.9 ? 'red.7' : share > 0.75 ? 'orange.6' : 'harbour.6'}
        size="sm"
        aria-label={`${label}: ${text}`}
      />
      {note === undefined ? null : (
        <Text size="xs" c="dimmed">
          {note}
        </Text>
      )}
    </Stack>
  )
}
