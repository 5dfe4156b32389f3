import { Group, Progress, Stack, Text, VisuallyHidden } from '@mantine/core'
import { Panel } from '../../components/page.js'
import { Status, type Tone } from '../../components/status.js'
import { counted, duration, percent, whole } from '../../lib/format.js'
import { type Action, countsOf, isOver, KIND_WORDS, OUTCOME_WORDS, STATE_WORDS } from './words.js'

const COLORS: Readonly<Record<Tone, string>> = {
  ok: 'var(--hp-ok)',
  busy: 'transparent',
  warn: 'var(--hp-warn)',
  bad: 'var(--hp-bad)',
  idle: 'var(--hp-idle)',
}

/** The progress of an action, as a bar of outcomes and in numbers. `nowMs` is when the counts were read. */
export function ProgressPanel({ action, nowMs }: { action: Action; nowMs: number }) {
  const counts = countsOf(action)
  const { matched, done, kind } = action
  const share = matched === 0 ? 1 : done / matched
  const { item, items } = KIND_WORDS[kind]
  return (
    <Panel>
      <Stack gap="sm">
        <Group justify="space-between" gap="xs">
          <Text fw={650} fz={22} style={{ fontVariantNumeric: 'tabular-nums' }}>
            {whole(done)} of {counted(matched, item, items)}
          </Text>
          <Text c="dimmed" size="sm">
            {percent(share)} · <Speed action={action} nowMs={nowMs} />
          </Text>
        </Group>
        <VisuallyHidden role="status">{announced(action, share)}</VisuallyHidden>
        <Progress.Root size="xl" aria-label="Progress" transitionDuration={200}>
          {counts
            .filter(({ name, count }) => name !== 'pending' && count > 0)
            .map(({ name, count }) => (
              <Progress.Section
                key={name}
                value={(count / matched) * 100}
                color={COLORS[OUTCOME_WORDS[name].tone]}
                aria-label={`${OUTCOME_WORDS[name].title}: ${whole(count)}`}
              />
            ))}
        </Progress.Root>
        <Group gap="lg">
          {counts.map(({ name, count }) => (
            <Status key={name} tone={count === 0 ? 'idle' : OUTCOME_WORDS[name].tone}>
              {OUTCOME_WORDS[name].title} {whole(count)}
            </Status>
          ))}
        </Group>
      </Stack>
    </Panel>
  )
}

/** The text for screen readers: the progress in steps of 10 % and the state. The exact numbers change too often. */
const announced = ({ state }: Action, share: number): string =>
  `${Math.floor(share * 10) * 10} %, ${STATE_WORDS[state].title.toLowerCase()}`

/** The speed and the estimated time left. */
function Speed({ action, nowMs }: { action: Action; nowMs: number }) {
  const { done, matched, createdAt, finishedAt, state } = action
  const lastedMs = Math.max(1, (finishedAt ?? nowMs) - createdAt)
  if (isOver(action)) return `took ${duration(lastedMs)}`
  if (state === 'paused') return 'paused'
  if (done === 0) return 'begins'
  const perMs = done / lastedMs
  return `${whole(perMs * 1_000)} per second, about ${duration((matched - done) / perMs)} left`
}
