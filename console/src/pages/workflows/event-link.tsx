import { TextLink } from '../../components/link.js'

/** The id of an event, as a link to the runs that wait for it and to its history. */
export const EventLink = ({ id }: { id: string }) => (
  <TextLink to="/events" search={{ event: id }} title={id} className="truncate">
    {id}
  </TextLink>
)
