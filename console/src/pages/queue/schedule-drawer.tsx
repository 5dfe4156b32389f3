import { Alert, Drawer, List, Stack, Text } from '@mantine/core'
import type { Static } from 'typebox'
import type { listSchedules } from '../../../../src/contract/queue/schedules.js'
import { FIRE_WORDS } from '../../../../src/contract/words/states.js'
import { Fact } from '../../components/copy.js'
import { TextLink } from '../../components/link.js'
import { PayloadPart } from '../../components/payload.js'
import { Status } from '../../components/status.js'
import { useNow } from '../../components/when.js'
import { dateTime, duration, retriesText } from '../../lib/format.js'
import { payloadOfBody } from '../../lib/payload.js'
import { capital } from '../../lib/states.js'
import { nextFires } from './fires.js'

/** A schedule as the server shows it. */
export type Schedule = Static<typeof listSchedules.success.body>[number]

/** The drawer of one schedule: its next and last fires, and its message. */
export function ScheduleDrawer({ schedule, onClose }: { schedule: Schedule | undefined; onClose: () => void }) {
  return (
    <Drawer opened={schedule !== undefined} onClose={onClose} position="right" size="lg" title="Schedule">
      {schedule === undefined ? null : <Everything schedule={schedule} />}
    </Drawer>
  )
}

function Everything({ schedule }: { schedule: Schedule }) {
  const { scheduleId, cron, destination, method, retries, delay, queueName, error, body, bodyBase64 } = schedule
  return (
    <Stack gap="md">
      {error === undefined ? null : (
        <Alert color="red" title="The last fire published no message">
          {error}
        </Alert>
      )}
      <div>
        <Fact name="ID" copy={scheduleId}>
          {scheduleId}
        </Fact>
        <Fact name="Cron expression">{cron}</Fact>
        <Fact name="Destination" copy={destination}>
          {destination}
        </Fact>
        <Fact name="Method">{method}</Fact>
        <Fact name="Retries">{retriesText(retries)}</Fact>
        {delay === undefined ? null : <Fact name="Delay">{duration(delay * 1000)}</Fact>}
        {queueName === undefined ? null : <Fact name="Queue">{queueName}</Fact>}
      </div>
      <NextFires schedule={schedule} />
      <LastFires schedule={schedule} />
      <PayloadPart
        title="Message body"
        payload={payloadOfBody(body, bodyBase64)}
        label="Message body"
        empty="The message has no body."
      />
    </Stack>
  )
}

function NextFires({ schedule: { cron, isPaused } }: { schedule: Schedule }) {
  const now = useNow()
  if (isPaused) return <Text size="sm">The schedule is paused.</Text>
  return <FireTimes cron={cron} nowMs={now} />
}

/** Next five fires in local time, or the error in the expression. */
export function FireTimes({ cron, nowMs }: { cron: string; nowMs: number }) {
  const fires = nextFires(cron, nowMs)
  if (fires.kind === 'problem') return null
  return (
    <div>
      <Text fw={600} size="sm" mb={4}>
        Next five fires
      </Text>
      <List size="sm">
        {fires.times.map((at) => (
          <List.Item key={at}>{dateTime(at)}</List.Item>
        ))}
      </List>
    </div>
  )
}

function LastFires({ schedule: { lastScheduleStates = {} } }: { schedule: Schedule }) {
  const fires = Object.entries(lastScheduleStates)
  if (fires.length === 0) return null
  return (
    <div>
      <Text fw={600} size="sm" mb={4}>
        Messages of the latest fires
      </Text>
      <Stack gap={4}>
        {fires.map(([messageId, state]) => (
          <Fact key={messageId} name={capital(FIRE_WORDS[state].word)}>
            <Status tone={FIRE_WORDS[state].tone}>
              <TextLink to="/messages/$id" params={{ id: messageId }}>
                {messageId}
              </TextLink>
            </Status>
          </Fact>
        ))}
      </Stack>
    </div>
  )
}
