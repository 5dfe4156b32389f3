import { Select } from '@mantine/core'
import { RUN_STATES } from '../../../../src/contract/workflow/run-states.js'
import { barField } from '../../components/filter-bar.js'
import { FilterField } from '../../components/filter-field.js'
import { given } from '../../lib/search.js'
import { FilterBar, MomentField } from './filters.js'
import { NAMED_ORDERS, WAIT_CHOICES } from './run-order.js'
import { type RunSearch, TOOK } from './search.js'
import { RUN_WORDS } from './words.js'

/** The filters of the list of runs. */
export function RunFilters({ filters, onChange }: { filters: RunSearch; onChange: (filters: RunSearch) => void }) {
  const set = (change: { readonly [Name in keyof RunSearch]?: RunSearch[Name] | undefined }) =>
    onChange(given({ ...filters, ...change }) as RunSearch)
  const { url, host, id, caller, flow, from, to, search, endedFrom, endedTo, took, waits } = filters
  const more = [url, host, id, caller, flow, from, to, endedFrom, endedTo, took, waits]
  return (
    <FilterBar
      isMoreUsed={more.some((value) => value !== undefined)}
      more={
        <>
          <FilterField label="Whole URL" value={url} onChange={(next) => set({ url: next })} />
          <FilterField label="Host" width={140} value={host} onChange={(next) => set({ host: next })} />
          <FilterField label="Run ID" width={140} value={id} onChange={(next) => set({ id: next })} />
          <FilterField label="Caller" width={110} value={caller} onChange={(next) => set({ caller: next })} />
          <FilterField label="Flow-control key" width={130} value={flow} onChange={(next) => set({ flow: next })} />
          <Choice
            label="Waits for"
            none="Waits for anything"
            width={165}
            choices={WAIT_CHOICES}
            value={waits}
            onChange={(next) => set({ waits: next })}
          />
          <Choice
            label="Took"
            none="Took any time"
            width={130}
            choices={TOOK.map(({ value }) => ({ value, label: `${value} or longer` }))}
            value={took}
            onChange={(next) => set({ took: TOOK.find(({ value }) => value === next)?.value })}
          />
          <MomentField label="From" value={from} onChange={(next) => set({ from: next })} />
          <MomentField label="To" value={to} onChange={(next) => set({ to: next })} />
          <MomentField label="Ended from" value={endedFrom} onChange={(next) => set({ endedFrom: next })} />
          <MomentField label="Ended to" value={endedTo} onChange={(next) => set({ endedTo: next })} />
        </>
      }
    >
      <Choice
        label="State"
        none="All states"
        width={130}
        choices={RUN_STATES.map((value) => ({ value, label: RUN_WORDS[value].title }))}
        value={filters.state}
        onChange={(value) => set({ state: RUN_STATES.find((known) => known === value) })}
      />
      <FilterField
        label="Search ids, URLs, errors"
        isSearch
        value={search}
        onChange={(next) => set({ search: next })}
      />
      <FilterField label="Label" width={110} value={filters.label} onChange={(label) => set({ label })} />
      <Choice
        label="Order"
        none="Newest first"
        width={140}
        choices={NAMED_ORDERS}
        value={NAMED_ORDERS.find(({ value }) => value === filters.sort)?.value}
        onChange={(sort) => set({ sort })}
      />
    </FilterBar>
  )
}

interface ChoiceProps {
  readonly label: string
  /** The text while there is no filter. */
  readonly none: string
  readonly width: number
  readonly choices: readonly { readonly value: string; readonly label: string }[]
  readonly value: string | undefined
  readonly onChange: (value: string | undefined) => void
}

function Choice({ label, none, width, choices, value, onChange }: ChoiceProps) {
  return (
    <Select
      aria-label={label}
      placeholder={none}
      size="xs"
      {...barField(width)}
      clearable
      data={[...choices]}
      value={value ?? null}
      onChange={(next) => onChange(next ?? undefined)}
    />
  )
}
