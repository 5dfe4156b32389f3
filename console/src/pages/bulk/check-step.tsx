import IconAlertTriangle from 'icon:alert-triangle'
import { Alert, Button, Group, NumberInput, Select, SimpleGrid, Stack, Text, TextInput } from '@mantine/core'
import type { UseFormReturnType } from '@mantine/form'
import type { UseQueryResult } from '@tanstack/react-query'
import { useSettings } from '../../api/session.js'
import { CodeBlock } from '../../components/copy.js'
import { Figure } from '../../components/figure.js'
import { TextLink } from '../../components/link.js'
import { Panel } from '../../components/page.js'
import { EmptyState, Loaded } from '../../components/states.js'
import { UNDO_CLOCKS } from '../../components/undo.js'
import { useNow } from '../../components/when.js'
import { counted, whole } from '../../lib/format.js'
import { TimingFields } from '../queue/delivery-fields.js'
import { PAUSE_CLOCKS, PAUSED_TIMES } from '../workflows/pause.js'
import {
  type Choice,
  hasConditions,
  isRedelivery,
  isUndo,
  kindOf,
  type Settings,
  selectsActiveRuns,
  selectsEverything,
} from './selector.js'
import { cliLine, curlLine } from './terminal.js'
import type { DryRun } from './use-dry-run.js'
import { KIND_WORDS, type Kind } from './words.js'

interface CheckProps {
  readonly choice: Choice
  readonly form: UseFormReturnType<Settings>
  readonly dryRun: UseQueryResult<DryRun, Error>
  readonly onBack: () => void
  readonly onNext: (matched: number) => void
}

/** The number of matches, the first of them, the settings, and the same action as a command. */
export function CheckStep({ choice, form, dryRun, onBack, onNext }: CheckProps) {
  const kind = kindOf(choice)
  return (
    <Loaded query={dryRun}>
      {({ matched, sample }) => (
        <Stack gap="lg">
          {selectsEverything(choice) ? (
            <Alert color="orange" icon={<IconAlertTriangle size={18} />} title="No filters are set">
              This selects every {KIND_WORDS[kind].item} of the account
              {selectsActiveRuns(kind) || kind === 'cancelMessages' ? ' that has not ended' : ''}.
            </Alert>
          ) : null}
          <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="lg">
            <Figure
              label={`${KIND_WORDS[kind].title}: number of matches`}
              value={whole(matched)}
              note={`All matches, not only those listed. ${KIND_WORDS[kind].means}`}
            />
            <Sample kind={kind} matched={matched} sample={sample} />
          </SimpleGrid>
          <HowPanel choice={choice} form={form} />
          <Terminal choice={choice} settings={form.values} />
          <Group justify="space-between">
            <Button variant="default" onClick={onBack}>
              Change the selection
            </Button>
            <Button disabled={matched === 0 || !form.isValid()} onClick={() => onNext(matched)}>
              Continue
            </Button>
          </Group>
        </Stack>
      )}
    </Loaded>
  )
}

/** The first matches, each with a link where it has a page. */
function Sample({ kind, matched, sample }: { kind: Kind; matched: number; sample: DryRun['sample'] }) {
  const { item, items } = KIND_WORDS[kind]
  if (matched === 0) return <EmptyState title="Nothing matches" />
  return (
    <Panel title={matched > sample.length ? `The first ${sample.length} matches` : 'Matches'}>
      <Stack
        gap={2}
        component="ul"
        m={0}
        p={0}
        mah={170}
        style={{ listStyle: 'none', overflowY: 'auto' }}
        tabIndex={0}
        aria-label={`First matching ${items}`}
      >
        {sample.map((found) => (
          <li key={found.id} className="truncate" style={{ flex: 'none' }}>
            <Found item={found} />
          </li>
        ))}
      </Stack>
      {matched > sample.length ? (
        <Text size="sm" c="dimmed" mt={4}>
          and {counted(matched - sample.length, `more ${item}`, `more ${items}`)}
        </Text>
      ) : null}
    </Panel>
  )
}

function Found({ item: { id, page, about } }: { item: DryRun['sample'][number] }) {
  return (
    <>
      <TextLink to={page} params={{ id }}>
        {id}
      </TextLink>{' '}
      <Text size="sm" c="dimmed" span>
        {about}
      </Text>
    </>
  )
}

const HOUR_MS = 3_600_000
const FENCES = [
  { value: '0', label: 'No' },
  { value: String(HOUR_MS / 4), label: 'For 15 minutes' },
  { value: String(HOUR_MS), label: 'For 1 hour' },
  { value: String(24 * HOUR_MS), label: 'For 1 day' },
]

const labelsOf = (choices: readonly { readonly value: string; readonly label: string }[]) =>
  choices.map(({ value, label }) => ({ value, label }))

function HowPanel({ choice, form }: Pick<CheckProps, 'choice' | 'form'>) {
  return (
    <Panel title="Settings" about="All of them are optional.">
      <SimpleGrid cols={{ base: 1, sm: 2 }} spacing="md">
        <TextInput
          label="Reason"
          description="Stored with the action and its items"
          placeholder="The import was started twice"
          maxLength={500}
          {...form.getInputProps('reason')}
        />
        <NumberInput
          label="Items per second"
          description="Empty: as fast as other traffic allows"
          placeholder="No limit"
          min={1}
          allowDecimal={false}
          allowNegative={false}
          {...form.getInputProps('ratePerSecond')}
        />
        {kindOf(choice) === 'pauseRuns' ? (
          <Select
            label={PAUSED_TIMES}
            description="At the resume"
            data={labelsOf(PAUSE_CLOCKS)}
            {...form.getInputProps('pauseClock')}
          />
        ) : null}
        {isUndo(kindOf(choice)) ? (
          <Select label="Deliveries are due" data={labelsOf(UNDO_CLOCKS)} {...form.getInputProps('undoClock')} />
        ) : null}
        {isRedelivery(choice) ? <TimingFields form={form} retriesLabel="Retries" retriesElse="As before" /> : null}
        {kindOf(choice) === 'cancelRuns' && !hasConditions(choice) ? (
          <Select
            label="Refuse new runs"
            description="Matching triggers get a 409 response"
            data={FENCES}
            value={String(form.values.fenceMs)}
            onChange={(value) => form.setFieldValue('fenceMs', Number(value ?? 0))}
          />
        ) : null}
      </SimpleGrid>
    </Panel>
  )
}

/** The same action as a command. */
export function Terminal({ choice, settings }: { choice: Choice; settings: Settings }) {
  const { queue_url } = useSettings()
  const now = useNow()
  return (
    <Panel title="The same as a command">
      <Stack gap="sm">
        <CodeBlock label="Command line" code={cliLine(choice, settings)} />
        <CodeBlock label="curl" code={curlLine(choice, settings, queue_url, now)} />
      </Stack>
    </Panel>
  )
}
