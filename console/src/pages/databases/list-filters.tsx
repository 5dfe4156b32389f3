import { Select } from '@mantine/core'
import { PRIMARY_REGIONS } from '../../../../src/contract/databases/regions.js'
import { useSettings } from '../../api/session.js'
import { barField, FilterGroup, SearchBox } from '../../components/filter-bar.js'
import { given } from '../../lib/search.js'
import { AGES, type Choice, type ListFilters, PLAN_CHOICES, SIZES, STATE_CHOICES, USES } from './list-search.js'

interface ListFiltersProps {
  readonly filters: ListFilters
  readonly onChange: (filters: ListFilters) => void
}

/** The filters of the list, one for each column. */
export function DatabaseFilters({ filters, onChange }: ListFiltersProps) {
  const { regions = PRIMARY_REGIONS } = useSettings()
  const set = (change: { [Name in keyof ListFilters]?: ListFilters[Name] | undefined }) =>
    onChange(given({ ...filters, ...change }))
  return (
    <FilterGroup>
      <SearchBox
        label="Search by name or id"
        value={filters.search ?? ''}
        onChange={(text) => set({ search: text === '' ? undefined : text })}
      />
      <Filter
        label="State"
        none="Any state"
        choices={STATE_CHOICES}
        value={filters.state}
        onChange={(state) => set({ state })}
      />
      <Filter
        label="Region"
        none="Any region"
        choices={regions.map((value) => ({ value, label: value }))}
        value={filters.region}
        onChange={(region) => set({ region })}
      />
      <Filter
        label="Plan"
        none="Any plan"
        choices={PLAN_CHOICES}
        value={filters.plan}
        onChange={(plan) => set({ plan })}
      />
      <Filter label="Data" none="Any size" choices={SIZES} value={filters.size} onChange={(size) => set({ size })} />
      <Filter
        label="Requests this month"
        none="Any requests"
        choices={USES}
        value={filters.use}
        onChange={(use) => set({ use })}
      />
      <Filter
        label="Created"
        none="Any age"
        choices={AGES}
        value={filters.created}
        onChange={(created) => set({ created })}
      />
    </FilterGroup>
  )
}

interface FilterProps<Value extends string> {
  readonly label: string
  /** The text while there is no filter. */
  readonly none: string
  readonly choices: readonly Choice<Value>[]
  readonly value: Value | undefined
  readonly onChange: (value: Value | undefined) => void
}

function Filter<Value extends string>({ label, none, choices, value, onChange }: FilterProps<Value>) {
  return (
    <Select
      aria-label={label}
      size="xs"
      {...barField(none.length > 10 ? 120 : 110)}
      data={[{ value: '', label: none }, ...choices.map((choice) => ({ value: choice.value, label: choice.label }))]}
      value={value ?? ''}
      allowDeselect={false}
      onChange={(text) => onChange(choices.find((choice) => choice.value === text)?.value)}
    />
  )
}
