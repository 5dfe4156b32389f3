import { Alert, Button, Group, Select, Stack, Text } from '@mantine/core'
import type { UseQueryResult } from '@tanstack/react-query'
import { BULK_KINDS } from '../../../../src/contract/bulk/actions.js'
import { Panel } from '../../components/page.js'
import { counted } from '../../lib/format.js'
import { given } from '../../lib/search.js'
import { ConditionFields, SaveSelection, Unreadable } from './condition-fields.js'
import { FAMILY_OF, type Family } from './families.js'
import { type Change, SelectionFields } from './fields.js'
import { type Choice, kindOf, selectsEverything, withKind } from './selector.js'
import type { DryRun } from './use-dry-run.js'
import { KIND_WORDS, type Kind } from './words.js'

/** The kind of action and the selection, with the number of matches. */
export function ChooseStep({
  choice,
  onChange,
  dryRun,
  isSettled,
  onNext,
}: {
  choice: Choice
  onChange: (choice: Choice) => void
  dryRun: UseQueryResult<DryRun, Error>
  /** Whether `dryRun` belongs to this choice, not to an earlier one. */
  isSettled: boolean
  onNext: () => void
}) {
  const set = (change: Change) => onChange(given({ ...choice, ...change }) as Choice)
  const kind = kindOf(choice)
  const isReady = isSettled && dryRun.data !== undefined && dryRun.data.matched > 0
  return (
    <form
      onSubmit={(event) => {
        event.preventDefault()
        if (isReady) onNext()
      }}
    >
      <Stack gap="lg">
        <Panel title="Action">
          <Select
            aria-label="Action"
            maw={360}
            data={KIND_GROUPS}
            value={kind}
            onChange={(value) => onChange(withKind(choice, BULK_KINDS.find((known) => known === value) ?? kind))}
          />
          <Text size="sm" c="dimmed" mt={6}>
            {KIND_WORDS[kind].means}
          </Text>
        </Panel>
        <Panel title="Selection" about="An item must match every filter. Without filters, everything is selected.">
          <SelectionFields key={kind} choice={choice} kind={kind} set={set} />
        </Panel>
        {choice.ids === undefined ? (
          <Panel title="Conditions" about="Tested on the items that pass the filters.">
            <Stack gap="md">
              <ConditionFields key={kind} choice={choice} set={set} />
              {selectsEverything(choice) ? null : <SaveSelection choice={choice} />}
            </Stack>
          </Panel>
        ) : null}
        <Unreadable count={dryRun.data?.unreadable ?? 0} />
        <Group justify="space-between" gap="sm">
          <Count dryRun={dryRun} kind={kind} choice={choice} />
          <Button type="submit" disabled={!isReady} loading={dryRun.isPending || !isSettled}>
            Check the matches
          </Button>
        </Group>
      </Stack>
    </form>
  )
}

const GROUPS: readonly (readonly [group: string, family: Family])[] = [
  ['Runs', 'runs'],
  ['Failed runs', 'deadRuns'],
  ['Messages', 'messages'],
  ['Dead letters', 'deadLetters'],
]

const KIND_GROUPS = GROUPS.map(([group, family]) => ({
  group,
  items: BULK_KINDS.filter((kind) => FAMILY_OF[kind] === family).map((value) => ({
    value,
    label: KIND_WORDS[value].title,
  })),
}))

function Count({ dryRun, kind, choice }: { dryRun: UseQueryResult<DryRun, Error>; kind: Kind; choice: Choice }) {
  if (dryRun.isError) {
    return (
      <Alert color="red" role="alert">
        {dryRun.error.message}
      </Alert>
    )
  }
  const { item, items } = KIND_WORDS[kind]
  return (
    <Text fw={600} role="status">
      {dryRun.data === undefined
        ? 'Counting…'
        : `${counted(dryRun.data.matched, item, items)} ${dryRun.data.matched === 1 ? 'matches' : 'match'}${selectsEverything(choice) && dryRun.data.matched > 0 ? ', which is all of them' : ''}`}
    </Text>
  )
}
