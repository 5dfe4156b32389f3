import IconRefresh from 'icon:refresh'
import { Alert, Button, SimpleGrid, Stack, Text } from '@mantine/core'
import type { ReactNode } from 'react'
import { Fact } from '../../components/copy.js'
import { TextLink } from '../../components/link.js'
import { PayloadView } from '../../components/payload.js'
import { Status } from '../../components/status.js'
import { When } from '../../components/when.js'
import { dateTime, delayText, duration, retriesText } from '../../lib/format.js'
import { headerLines, payloadOfText } from '../../lib/payload.js'
import { TimeTable } from './time-table.js'
import type { Bar } from './timeline.js'
import { STEP_WORDS, type Step, sentence } from './words.js'

/** All details of a step. */
export function StepDetail({
  bar,
  runId,
  onRestart,
}: {
  bar: Bar
  runId: string
  onRestart?: ((step: Step) => void) | undefined
}) {
  const { step, reason } = bar
  return (
    <Stack gap="md">
      {reason === undefined ? null : <Alert color="gray">{sentence(reason.text)}</Alert>}
      <div>
        <StepFacts bar={bar} runId={runId} />
      </div>
      <TimeTable bar={bar} />
      <SimpleGrid cols={{ base: 1, md: 2 }} spacing="md">
        <Content title="Request body" value={step.callBody} />
        <Content title="Response body" value={step.callResponseBody} />
        <Content title={step.stepType === 'Initial' ? 'Payload' : 'Result'} value={resultOf(step)} />
        <Headers title="Request headers" headers={step.callHeaders} />
        <Headers title="Response headers" headers={step.callResponseHeaders} />
        <Content title="Payload of the invoked run" value={step.invokedWorkflowRunBody} />
        <Headers title="Headers of the invoked run" headers={step.invokedWorkflowRunHeaders} />
        {step.stepType === 'Initial' ? <Headers title="Trigger headers" headers={step.headers} /> : null}
      </SimpleGrid>
      <Attempts step={step} />
      {onRestart === undefined ? null : (
        <Button
          size="xs"
          variant="default"
          leftSection={<IconRefresh size={14} />}
          onClick={() => onRestart(step)}
          style={{ alignSelf: 'flex-start' }}
        >
          Restart from here…
        </Button>
      )}
    </Stack>
  )
}

/** The result of a step. For a call it is the response, which the page already shows. */
const resultOf = ({ stepType, out }: Step): unknown => (stepType === 'Call' ? undefined : out)

function StepFacts({ bar, runId }: { bar: Bar; runId: string }) {
  const { step, state } = bar
  return (
    <>
      <Fact name="State">
        <Status tone={STEP_WORDS[state].tone}>{STEP_WORDS[state].title}</Status>
      </Fact>
      {step.createdAt === undefined ? null : <Fact name="Time">{dateTime(step.createdAt)}</Fact>}
      <Optional name="Sleeps until">{step.sleepUntil === undefined ? undefined : dateTime(step.sleepUntil)}</Optional>
      <Optional name="Request">
        {step.callUrl === undefined ? undefined : `${step.callMethod ?? ''} ${step.callUrl}`}
      </Optional>
      <Optional name="Response status">{step.callResponseStatus}</Optional>
      <Optional name="Event">
        {step.waitEventId === undefined ? undefined : (
          <TextLink to="/events" search={{ event: step.waitEventId }}>
            {step.waitEventId}
          </TextLink>
        )}
      </Optional>
      <Optional name="Timeout">{step.waitTimeoutDuration}</Optional>
      <Optional name="Times out">
        {step.waitTimeoutDeadline === undefined || state !== 'STEP_PROGRESS' ? undefined : (
          <When atMs={step.waitTimeoutDeadline} />
        )}
      </Optional>
      <Optional name="Timed out">{step.waitTimeout === true ? 'yes, the event was not sent' : undefined}</Optional>
      <Optional name="Invoked run">
        {step.invokedWorkflowRunId === undefined || step.invokedWorkflowRunId === runId ? undefined : (
          <TextLink to="/runs/$id" params={{ id: step.invokedWorkflowRunId }}>
            {step.invokedWorkflowRunId}
          </TextLink>
        )}
      </Optional>
      <Optional name="Retries">{step.retries === undefined ? undefined : retriesText(step.retries)}</Optional>
      <Optional name="Retry delay">{delayText(step.retryDelay)}</Optional>
      <Optional name="Next attempt">
        {step.nextDeliveryTime === undefined ? undefined : <When atMs={step.nextDeliveryTime} />}
      </Optional>
    </>
  )
}

function Optional({ name, children }: { name: string; children: ReactNode }) {
  return children === undefined ? null : <Fact name={name}>{children}</Fact>
}

function Content({ title, value }: { title: string; value: unknown }) {
  if (value === undefined || value === null) return null
  const text = typeof value === 'string' ? value : JSON.stringify(value)
  return (
    <Stack gap={6}>
      <Text size="sm" fw={600}>
        {title}
      </Text>
      <PayloadView payload={payloadOfText(text)} label={title} empty="Nothing." />
    </Stack>
  )
}

function Headers({ title, headers }: { title: string; headers: Step['headers'] }) {
  return headers === undefined || Object.keys(headers).length === 0 ? null : (
    <Content title={title} value={headerLines(headers)} />
  )
}

function Attempts({ step: { errors = [], retries } }: { step: Step }) {
  if (errors.length === 0) return null
  return (
    <Stack gap="sm">
      <Text size="sm" fw={600}>
        Failed attempts
      </Text>
      {errors.map(({ status, time, error, body }, index) => (
        <Stack key={time} gap={4}>
          <Text size="sm">
            {index === 0 ? 'First attempt' : `Retry ${index}${retries === undefined ? '' : ` of ${retries}`}`},{' '}
            {dateTime(time)}
            {index === 0 ? '' : ` (${duration(time - (errors[index - 1]?.time ?? time))} later)`}:{' '}
            {status === 0 ? 'no response.' : `status ${status}.`} {error ?? ''}
          </Text>
          {body === '' ? null : <PayloadView payload={payloadOfText(body)} label={`Response at ${dateTime(time)}`} />}
        </Stack>
      ))}
    </Stack>
  )
}
