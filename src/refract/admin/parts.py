"""Every feature's share in a person's data: for the export of everything and for the deletion of an account."""

from refract.library import leaving as library_leaving
from refract.links import leaving as link_leaving
from refract.lists import leaving as list_leaving
from refract.reports import leaving as report_leaving

PARTS = (report_leaving.PART, link_leaving.PART, link_leaving.INVITATIONS, list_leaving.PART, library_leaving.PART)
